"""llama-cpp-python's own OpenAI-compatible server on loopback."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Served:
    address: str  # "http://127.0.0.1:PORT/v1"
    process: subprocess.Popen[bytes]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def serving(gguf: Path, context: int = 2048, port: int = 0) -> Iterator[Served]:
    """The server with a GGUF file, from when it answers."""
    port = port or free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(gguf), "--port", str(port)]
    # By default a second request interrupts the first.
    command += ["--n_threads", "1", "--n_ctx", str(context), "--interrupt_requests", "False"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/v1"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                opener.open(f"{address}/models", timeout=2).read()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, "the server did not start"
                time.sleep(0.1)
        yield Served(address, process)
    finally:
        process.kill()
        process.wait()
