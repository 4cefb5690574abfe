# SPDX-License-Identifier: Apache-2.0
"""An HTTP server for tests: keeps every request, answers as a file tells it to.

    http_recorder.py FOLDER

FOLDER/port      the TCP port, written when it listens; FOLDER/socket is a unix socket
FOLDER/behave    read at each request to a trace route: "ok" (default), "500", "drop" (close without
                 an answer), "reject" (OTLP partial success), "drop-after N" (N are answered first)
FOLDER/N.head    line of the request and its headers; FOLDER/N.body its body, de-chunked
FOLDER/answer-K  what a query gets, K = calls, max, 0.5, 0.95, 0.99
FOLDER/reconcile what /debug/reconcile gets
"""
import http.server
import os
import re
import socket
import socketserver
import sys
import threading
import urllib.parse

folder = sys.argv[1]
lock = threading.Lock()
seen = 0


def text_of(name, default):
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            return f.read().strip()
    except FileNotFoundError:
        return default


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = False

    def address_string(self):
        return "test"

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        parts = []
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            parts.append(self.rfile.read(size))
            self.rfile.readline()
            if size == 0:
                return b"".join(parts)

    def answer(self, status, body=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def query(self, body):
        query = urllib.parse.parse_qs(body.decode())["query"][0]
        quantile = re.match(r"quantile_over_time\(([0-9.]+),", query)
        name = quantile.group(1) if quantile else "max" if query.startswith("max") else "calls"
        text = text_of("answer-" + name, "")
        self.answer(200 if text else 503, text.encode())

    def trace(self, number):
        behave = text_of("behave", "ok").split()
        if behave[0] == "500":
            self.answer(500, b'{"error":"out of\nmemory"}')
        elif behave[0] == "drop" or (behave[0] == "drop-after" and number >= int(behave[1])):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif behave[0] == "reject":
            self.answer(200, b"\x0a\x05\x08\x02\x12\x01x", "application/x-protobuf")
        else:
            otlp = self.path.startswith("/v1/")
            self.answer(200, b"" if otlp else b'{"rate_by_service":{}}')

    def any(self):
        global seen
        body = self.body()
        if self.path == "/api/v1/query":
            return self.query(body)
        if self.path == "/debug/reconcile":
            return self.answer(200, text_of("reconcile", '{"balanced":true}').encode())
        with lock:
            number = seen
            seen += 1
        with open(os.path.join(folder, "%d.body" % number), "wb") as f:
            f.write(body)
        with open(os.path.join(folder, "%d.head" % number), "w", encoding="latin-1") as f:
            f.write(self.requestline + "\n" + str(self.headers))
        return self.trace(number)

    do_GET = do_PUT = do_POST = any


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


unix = UnixServer(os.path.join(folder, "socket"), Handler)
threading.Thread(target=unix.serve_forever, daemon=True).start()
tcp = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(os.path.join(folder, "port.new"), "w", encoding="ascii") as f:
    f.write(str(tcp.server_address[1]))
os.rename(os.path.join(folder, "port.new"), os.path.join(folder, "port"))
tcp.serve_forever()
