# SPDX-License-Identifier: Apache-2.0
"""The shop of app.js with Flask: visits itself, writes down how many requests it made and how many failed."""
import http.client
import json
import os
import threading
import time

from flask import Flask
from werkzeug.serving import make_server

shop = Flask("shop")


@shop.get("/item/<int:number>")
def item(number):
    time.sleep(0.010 if number % 10 == 0 else 0.001)
    return {"item": number}


@shop.get("/broken")
def broken():
    return "broken\n", 500


def visit(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def main():
    server = make_server("127.0.0.1", 0, shop, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    done = {"requests": 0, "failed": 0}
    fail_every = int(os.environ["FAIL_EVERY"])
    for i in range(1, int(os.environ["VISITS"]) + 1):
        path = "/broken" if i % fail_every == 0 else "/item/%d" % i
        done["requests"] += 1
        done["failed"] += visit(server.server_port, path) == 500
    server.shutdown()
    with open(os.environ["RESULT"], "w") as f:
        json.dump(done, f)


main()
