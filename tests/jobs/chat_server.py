"""A small OpenAI-compatible server on loopback that says what it is told to, streaming."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Messages = list[dict[str, str]]


class ChatServer:
    """``answer`` makes the text from the messages of a request; ``conversations`` are those it was asked."""

    def __init__(self, answer: Callable[[Messages], str]) -> None:
        self.conversations: list[Messages] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send("application/json", json.dumps({"object": "list", "data": [{"id": "talker"}]}).encode())

            def do_POST(self) -> None:
                messages = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
                outer.conversations.append(messages)
                text = answer(messages)
                parts = [text[i : i + 40] for i in range(0, len(text), 40)]
                events = [_chunk({"content": part}) for part in parts] + [_chunk({}, "stop")]
                lines = [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]
                self._send("text/event-stream", "".join(lines).encode())

            def _send(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


def _chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "talker", "choices": [choice]}
