"""A client of a language server that does no more than a benchmark needs: requests, notifications, and when answers came."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

CAPABILITIES = {
    "window": {"workDoneProgress": True},
    "workspace": {"codeLens": {"refreshSupport": True}, "configuration": True},
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}},
}


class Client:
    """The least client there is, so that what is measured is the server."""

    def __init__(self, command: list[str], folder: Path) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.notes: queue.SimpleQueue[tuple[float, dict[str, Any]]] = queue.SimpleQueue()
        self._answers: dict[int, queue.SimpleQueue[Any]] = {}
        self._number = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()
        params = {"processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": CAPABILITIES}
        self.request("initialize", params)
        self.startup = time.perf_counter() - began
        self.notify("initialized", {})

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        self._number += 1
        number, answer = self._number, queue.SimpleQueue[Any]()
        self._answers[number] = answer
        self._send({"id": number, "method": method, "params": params})
        message = answer.get(timeout=120)
        if "error" in message:
            raise RuntimeError(message["error"]["message"])
        return message["result"]

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        with self._lock:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self.process.stdin.flush()

    def _read(self) -> None:
        out = self.process.stdout
        assert out is not None
        while header := out.readline():
            length = int(header.split(b":")[1])
            while out.readline().strip():
                pass
            body = out.read(length)
            now = time.perf_counter()
            message = json.loads(body)
            if "method" not in message:
                self._answers.pop(message["id"]).put(message)
                continue
            if "id" in message:
                self._send({"id": message["id"], "result": [None] if "configuration" in message["method"] else None})
            self.notes.put((now, message))

    def wait_for(self, method: str, seconds: float) -> float | None:
        """When a message of that method came; None if none did in time."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            try:
                moment, message = self.notes.get(timeout=left)
            except queue.Empty:
                break
            if message["method"] == method:
                return moment
        return None

    def forget_notes(self) -> None:
        while not self.notes.empty():
            self.notes.get()

    def exit(self) -> float:
        """Seconds from the shutdown request to the end of the process."""
        began = time.perf_counter()
        self.request("shutdown", None)
        self.notify("exit", None)
        self.process.wait(10)
        return time.perf_counter() - began
