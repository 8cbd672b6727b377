"""The model host's loop: one thread reads, so that a cancel is seen at once; the main thread works, one request at a time.

Protocol: docs/architecture.md. Nothing is imported here but the standard library; a backend comes with its ``load``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import json
import logging
import os
import platform
import queue
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any, Protocol

from kernel_lsp import errors
from kernel_lsp.child_processes import die_with
from kernel_lsp.modelhost.request import Request

#: backend → module under kernel_lsp.modelhost with a function ``load(params, request) -> Backend``
BACKENDS = {"transformers": "transformers_backend", "llama-cpp": "llama_cpp_backend", "openai": "openai_backend"}
#: what ``hello`` reports → the distribution that brings it
PACKAGES = {"torch": "torch", "transformers": "transformers", "llama_cpp": "llama-cpp-python", "openai": "openai"}


class Backend(Protocol):
    """A loaded model. ``about`` is the answer to ``load``."""

    about: dict[str, Any]

    def tokenize(self, prompt: str) -> list[int]:
        """The tokens of a text, as the model counts them."""

    def generate(self, params: dict[str, Any], request: Request) -> dict[str, Any]:
        """Answer a ``generate`` request; texts that grow are sent as events."""

    def close(self) -> None:
        """Free the model's memory."""


def run(requests_fd: int, answers_fd: int) -> None:
    """Serve until standard input ends or the parent does; then end at once, whatever is going on."""
    die_with(os.getppid())
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with contextlib.suppress(KeyboardInterrupt):
        _Host(answers_fd).serve(requests_fd)
    os._exit(0)


class _Host:
    def __init__(self, answers_fd: int) -> None:
        self.answers_fd = answers_fd
        self.sending = threading.Lock()
        self.waiting: queue.SimpleQueue[tuple[Any, Request]] = queue.SimpleQueue()
        self.open: dict[Any, Request] = {}
        self.backend: Backend | None = None
        self.loaded: dict[str, Any] = {}  # the parameters of the load that brought ``backend``

    def serve(self, requests_fd: int) -> None:
        threading.Thread(target=self._read, args=(requests_fd,), daemon=True, name="requests").start()
        while True:
            ident, request = self.waiting.get()
            self._answer(ident, request)

    def _read(self, requests_fd: int) -> None:
        """The reading thread. Its end is the process's end: nothing that the main thread does is worth waiting for."""
        try:
            for line in _lines(requests_fd):
                self._line(line)
        finally:
            os._exit(0)

    def _line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            method, params = message["method"], message.get("params") or {}
        except (ValueError, KeyError, TypeError):
            print(f"kernel-lsp model host: not a request: {line[:200]!r}", file=sys.stderr, flush=True)
            return
        if method == "shutdown":
            os._exit(0)
        if method == "cancel":
            request = self.open.get(params.get("id"))
            if request:
                request.cancelled.set()
            return
        ident = message.get("id")

        def emit(event: str, data: Any) -> None:
            self._send({"id": ident, "event": event, "data": data})

        self.open[ident] = Request(method, params, emit)
        self.waiting.put((ident, self.open[ident]))

    def _answer(self, ident: Any, request: Request) -> None:
        answer: dict[str, Any] = {"id": ident}
        try:
            request.check()
            answer["result"] = self._handle(request)
        except errors.UserError as error:
            answer["error"] = error.to_json()
        except Exception as error:
            traceback.print_exc()
            answer["error"] = errors.InternalError(detail=f"{type(error).__name__}: {error}").to_json()
        self.open.pop(ident, None)
        self._send(answer)

    def _handle(self, request: Request) -> Any:
        if request.method == "hello":
            return hello()
        if request.method == "load":
            return self._load(request)
        if request.method == "unload":
            self._unload()
            return {}
        if request.method not in ("tokenize", "generate"):
            raise errors.UserError(message=f"The model host knows no method {request.method!r}.")
        if self.backend is None:
            raise errors.UserError(message="The model host has no model loaded. Load one first.")
        if request.method == "tokenize":
            return {"ids": self.backend.tokenize(request.params["prompt"])}
        return self.backend.generate(request.params, request)

    def _load(self, request: Request) -> Any:
        if self.backend is not None and self.loaded == request.params:
            return self.backend.about
        self._unload()
        name = request.params.get("backend", "")
        if name not in BACKENDS:
            known = ", ".join(sorted(BACKENDS))
            raise errors.UserError(message=f"There is no model backend {name!r}. Choose from: {known}.")
        module = importlib.import_module(f"kernel_lsp.modelhost.{BACKENDS[name]}")
        self.backend = module.load(request.params, request)
        self.loaded = request.params
        return self.backend.about if self.backend else None

    def _unload(self) -> None:
        backend, self.backend, self.loaded = self.backend, None, {}
        if backend is not None:
            backend.close()

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self.sending:
            try:
                while data:
                    data = data[os.write(self.answers_fd, data) :]
            except OSError:
                os._exit(0)


def _lines(fd: int) -> Iterator[bytes]:
    """The lines that come in on a descriptor, until it ends."""
    rest = b""
    while data := os.read(fd, 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


def hello() -> dict[str, Any]:
    """What this interpreter has, found without importing any of it."""
    return {
        "interpreter": sys.executable,
        "python": platform.python_version(),
        "packages": {name: _version(distribution) for name, distribution in PACKAGES.items()},
        "devices": [],
        "problems": [],
    }


def _version(distribution: str) -> str:
    """The version of an installed distribution, or "" where there is none."""
    try:
        return importlib.metadata.version(distribution) or ""
    except importlib.metadata.PackageNotFoundError:
        return ""
