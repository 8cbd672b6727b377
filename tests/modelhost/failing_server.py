"""A small real HTTP server on loopback that passes requests on to a good one, after failing as it is told to."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FailingServer:
    """``faults`` are used up one a POST: each is called with the handler and returns whether it has answered."""

    def __init__(self, good: str) -> None:
        self.good = good.removesuffix("/v1")
        self.faults: list[Any] = []
        self.requests: list[tuple[float, dict[str, Any], dict[str, str]]] = []  # when, body, headers
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.pass_on(self, None)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.requests.append((time.monotonic(), json.loads(body), dict(self.headers)))
                fault = outer.faults.pop(0) if outer.faults else None
                if fault is None or not fault(self):
                    outer.pass_on(self, body)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.base_url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def pass_on(self, handler: BaseHTTPRequestHandler, body: bytes | None, cut: int | None = None) -> None:
        """The good server's answer, or its first ``cut`` bytes and then a closed connection."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(self.good + handler.path, body, {"content-type": "application/json"})
        with opener.open(request, timeout=30) as answer:
            handler.send_response(answer.status)
            handler.send_header("content-type", answer.headers["content-type"])
            handler.send_header("connection", "close")
            handler.end_headers()
            sent = 0
            while line := answer.readline():
                if cut is not None and sent + len(line) > cut:
                    break
                handler.wfile.write(line)
                sent += len(line)
        handler.close_connection = True

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


def status(code: int, message: str = "no", **headers: str) -> Any:
    """Answer with an HTTP status and OpenAI's form of an error."""

    def answer(handler: BaseHTTPRequestHandler) -> bool:
        body = json.dumps({"error": {"message": message, "type": "test"}}).encode()
        handler.send_response(code)
        for name, value in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)
        return True

    return answer


def raw(content_type: str, body: bytes) -> Any:
    """Answer 200 with these bytes."""

    def answer(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.send_header("content-type", content_type)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return True

    return answer


def silent(seconds: float) -> Any:
    """Say nothing for so long."""

    def answer(handler: BaseHTTPRequestHandler) -> bool:
        time.sleep(seconds)
        handler.close_connection = True
        return True

    return answer
