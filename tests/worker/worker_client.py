"""A real worker process and its pipe, for tests."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

MAIN = Path(__file__).parents[2] / "kernel_lsp" / "worker" / "__main__.py"


class WorkerError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.message = error["message"]
        self.where = error.get("where") or {}
        self.data = error.get("data")


class Client:
    """``call`` waits for a result; ``events`` holds what came before it, as (name, data, seconds since the request)."""

    def __init__(self, command: list[str] | None = None, env: dict[str, str] | None = None, main: Path = MAIN) -> None:
        self.process = subprocess.Popen(
            [*(command or [sys.executable]), str(main)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
        )
        self.lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._stderr: list[str] = []
        self.ids = iter(range(1, 10**9))
        self.events: list[tuple[str, Any, float]] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_stderr, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._stderr.append(line.decode("utf-8", "replace"))

    @property
    def stderr(self) -> str:
        """What it has written to standard error so far."""
        return "".join(self._stderr)

    def send(self, method: str, **params: Any) -> int:
        ident = next(self.ids)
        self.write({"id": ident, "method": method, "params": params})
        return ident

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def next(self, timeout: float = 100) -> dict[str, Any]:
        message = self.lines.get(timeout=timeout)
        assert message is not None, f"the worker ended: {self.stderr[-2000:]}"
        return message

    def wait(self, ident: int, timeout: float = 100) -> Any:
        began = time.monotonic()
        self.events = []
        while True:
            message = self.next(timeout)
            if message.get("id") != ident:
                continue
            if "event" in message:
                self.events.append((message["event"], message["data"], time.monotonic() - began))
            elif "error" in message:
                raise WorkerError(message["error"])
            else:
                return message["result"]

    def call(self, method: str, timeout: float = 100, **params: Any) -> Any:
        return self.wait(self.send(method, **params), timeout)

    def close(self) -> None:
        if self.process.poll() is None:
            assert self.process.stdin
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.kill(self.process.pid, 9)
