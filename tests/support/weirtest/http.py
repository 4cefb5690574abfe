# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as bytes: a client that sends exactly what it is told, and a tee between two peers."""
import contextlib
import gzip
import os
import socket
import threading


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # lower-case names
        self.body = body

    def __repr__(self):
        return "%d %r" % (self.status, self.body[:200])


class Connection:
    """A keep-alive connection to (host, port), or to a unix socket given as a path."""

    def __init__(self, target, timeout=10):
        if isinstance(target, str):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        try:
            self.sock.connect(target)
        except OSError:
            self.sock.close()
            raise
        self.file = self.sock.makefile("rb")

    def close(self):
        self.file.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.sock.sendall(data)

    def read_response(self, method="GET"):
        while True:
            status, headers = read_head_of_response(self.file)
            if status != 100:
                break
        length = int(headers.get("content-length", 0))
        return Response(status, headers, b"" if method == "HEAD" else read_exactly(self.file, length))

    def request(self, method, path, body=b"", headers=(), chunks=None):
        """chunks: sizes to cut the body into, each sent by itself; then no Content-Length is sent."""
        lines = ["%s %s HTTP/1.1" % (method, path)]
        names = {name.lower() for name, _ in headers}
        if "host" not in names:
            lines.append("Host: localhost")
        lines += ["%s: %s" % h for h in headers]
        if chunks is not None and "transfer-encoding" not in names:
            lines.append("Transfer-Encoding: chunked")
        if chunks is None and body and "content-length" not in names:
            lines.append("Content-Length: %d" % len(body))
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        if chunks is None:
            self.send(head + body)
        else:
            self.send(head)
            at = 0
            for size in chunks:
                self.send(b"%x\r\n%s\r\n" % (size, body[at:at + size]))
                at += size
            assert at == len(body), "chunk sizes do not add up to the body"
            self.send(b"0\r\n\r\n")
        return self.read_response(method)


def request(target, method, path, body=b"", headers=(), chunks=None):
    with Connection(target) as c:
        return c.request(method, path, body, headers, chunks)


def read_exactly(file, count):
    data = file.read(count)
    if len(data) != count:
        raise EOFError("the peer closed after %d of %d bytes" % (len(data), count))
    return data


def read_line(file):
    line = file.readline(1 << 20)
    if not line.endswith(b"\n"):
        raise EOFError("the peer closed within a line" if line else "the peer closed")
    return line.rstrip(b"\r\n").decode("latin-1")


def read_headers(file):
    headers = {}
    while True:
        line = read_line(file)
        if not line:
            return headers
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()


def read_head_of_response(file):
    line = read_line(file)
    return int(line.split(" ")[1]), read_headers(file)


def read_chunked(file):
    data = []
    while True:
        size = int(read_line(file).partition(";")[0], 16)
        if size == 0:
            read_headers(file)  # trailers
            return b"".join(data)
        data.append(read_exactly(file, size))
        read_line(file)


class Request:
    def __init__(self, method, path, headers, body):
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body  # de-chunked
        self.status = None  # of the answer

    def decoded(self):
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body


class Tee:
    """Stands between clients and a server, passes every byte on as it comes, and keeps both streams."""

    def __init__(self, server, unix=None):
        self.server = server
        self.pairs = []  # of [client bytes, server bytes]
        self.lock = threading.Lock()
        if unix:
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unix)
            self.listener.bind(unix)
            self.address = unix
        else:
            self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self.listener.bind(("127.0.0.1", 0))
            self.address = self.listener.getsockname()
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = Connection(self.server, timeout=None).sock
            pair = [bytearray(), bytearray()]
            with self.lock:
                self.pairs.append(pair)
            for source, sink, kept in ((client, server, pair[0]), (server, client, pair[1])):
                threading.Thread(target=self._pump, args=(source, sink, kept), daemon=True).start()

    def _pump(self, source, sink, kept):
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data:
                    break
                with self.lock:
                    kept += data
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()

    def requests(self):
        """Every request that passed whole, with the status of its answer (None: not answered)."""
        import io
        found = []
        with self.lock:
            pairs = [(bytes(a), bytes(b)) for a, b in self.pairs]
        for sent, answered in pairs:
            requests = []
            file = io.BytesIO(sent)
            with contextlib.suppress(EOFError):
                while True:
                    method, path, _ = read_line(file).split(" ", 2)
                    headers = read_headers(file)
                    if "chunked" in headers.get("transfer-encoding", ""):
                        body = read_chunked(file)
                    else:
                        body = read_exactly(file, int(headers.get("content-length", 0)))
                    requests.append(Request(method, path, headers, body))
            file = io.BytesIO(answered)
            with contextlib.suppress(EOFError):
                for one in requests:
                    status = 100
                    while status == 100:
                        status, headers = read_head_of_response(file)
                    if one.method != "HEAD":
                        read_exactly(file, int(headers.get("content-length", 0)))
                    one.status = status
            found += requests
        return found
