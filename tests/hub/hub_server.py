"""The Hugging Face Hub's API for repositories given as dictionaries, over real HTTP on loopback, with faults to order.

As on the Hub, large files are redirected to another host (here ``localhost`` for ``127.0.0.1``), which takes ranges.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_" + "t" * 34
TINY, QUANTISED = "maker/Tiny", "maker/Tiny-GGUF"
_CHUNK = 1 << 16


@dataclass
class Repository:
    files: dict[str, bytes]
    card: dict[str, Any] = field(default_factory=lambda: {"license": "other"})
    gated: bool = False
    commit: str = COMMIT


@dataclass
class Asked:
    method: str
    path: str
    range: str
    authorized: bool
    host: str


@dataclass
class Hub:
    """What the server has and how it misbehaves.

    ``cuts``: file → bytes after which each further answer breaks off; ``wrong``: file → how many answers are damaged;
    ``seconds_per_chunk``: of 64 KiB; ``status``: what every request for a large file is answered with;
    ``portal``: a network's sign-in page answers instead.
    """

    endpoint: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    cuts: dict[str, list[int]] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    short: dict[str, int] = field(default_factory=dict)
    seconds_per_chunk: float = 0.0
    status: int = 0
    portal: bool = False
    asked: list[Asked] = field(default_factory=list)

    def ranges(self, file: str) -> list[str]:
        """The ranges that the contents of a large file were asked for with; "" for all of it."""
        return [
            a.range for a in self.asked if a.method == "GET" and a.path.startswith("/cdn/") and a.path.endswith(file)
        ]


def safetensors(tensors: int, size: int) -> bytes:
    """A valid file of that many tensors of ``size`` bytes each, with contents that differ."""
    header = {
        f"layer.{i}": {"dtype": "U8", "shape": [size], "data_offsets": [i * size, (i + 1) * size]}
        for i in range(tensors)
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(contents(size, i) for i in range(tensors))


def gguf(size: int, seed: int = 0) -> bytes:
    """The magic number and version of a GGUF, and bytes: no llama.cpp looks at it here."""
    return b"GGUF\x03\x00\x00\x00" + contents(size - 8, seed)


def contents(size: int, seed: int) -> bytes:
    return hashlib.shake_128(str(seed).encode()).digest(size)


def transformers_model(weights: int = 300_000) -> dict[str, bytes]:
    """A repository as KernelLLM's: two shards, their index, the same weights again as pickles and originals."""
    shards = {f"model-0000{i}-of-00002.safetensors": safetensors(2, weights // 2) for i in (1, 2)}
    shards["model-00002-of-00002.safetensors"] = safetensors(3, weights // 3)
    index = {"metadata": {}, "weight_map": {f"layer.{i}": name for i, name in enumerate(shards)}}
    return shards | {
        "model.safetensors.index.json": json.dumps(index).encode(),
        "config.json": json.dumps({"architectures": ["LlamaForCausalLM"]}).encode(),
        "generation_config.json": b"{}",
        "tokenizer.json": contents(70_000, 7),  # a large file, too, as on the Hub
        "tokenizer_config.json": b"{}",
        "special_tokens_map.json": b"{}",
        "kernelllm.py": b"PROMPT = ''\n",
        "LICENSE": b"Do as you would be done by.\n",
        "README.md": b"# A model\n",
        "pytorch_model-00001-of-00001.bin": b"pickle" * 20_000,
        "original/consolidated.00.pth": b"pickle" * 20_000,
        "plot.png": b"png",
    }


def gguf_repository(size: int = 200_000) -> dict[str, bytes]:
    names = ["Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "bf16"]
    files = {f"tiny-{name}.gguf": gguf(size * (i + 1), i) for i, name in enumerate(names)}
    parts = {f"tiny-f32/tiny-f32-0000{i}-of-00002.gguf": gguf(size * 4, 10 + i) for i in (1, 2)}
    return files | parts | {"README.md": b"# Quantised\n", "tiny.imatrix.gguf": gguf(1000)}


def is_large(content: bytes) -> bool:
    return len(content) > 50_000


def checksum(content: bytes) -> str:
    if is_large(content):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: Any) -> None:
            pass

        def do_GET(self) -> None:
            with suppress(ConnectionError):
                _answer(hub, self)

        do_HEAD = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def _answer(hub: Hub, request: BaseHTTPRequestHandler) -> None:
    path = request.path.partition("?")[0]
    token = request.headers.get("Authorization", "")
    asked = Asked(request.command, path, request.headers.get("Range", ""), bool(token), request.headers.get("Host", ""))
    hub.asked.append(asked)
    if hub.portal:
        return _send(request, 200, {"Content-Type": "text/html"}, b"<html>Welcome to the hotel</html>")
    if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/[^/]+)?", path):
        return _info(hub, request, match[1])
    if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/[^/]+", path):
        return _tree(request, hub.repositories[match[1]])
    if match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
        return _resolve(hub, request, match[1], match[2], token == f"Bearer {TOKEN}")
    if match := re.fullmatch(r"/cdn/([^/]+/[^/]+)/(.+)", path):
        return _send_large(hub, request, hub.repositories[match[1]].files[match[2]], match[2])
    return _send(request, 404, {}, b"{}")


def _info(hub: Hub, request: BaseHTTPRequestHandler, name: str) -> None:
    repository = hub.repositories.get(name)
    if repository is None:  # as the Hub: a client that is not signed in does not learn whether there is one
        error = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
        return _send(request, 401, error, b'{"error": "Repository not found"}')
    siblings = []
    for path, content in repository.files.items():
        entry: dict[str, Any] = {"rfilename": path, "size": len(content)}
        entry["blobId"] = (
            hashlib.sha1(content, usedforsecurity=False).hexdigest() if is_large(content) else checksum(content)
        )
        if is_large(content):
            entry["lfs"] = {"sha256": checksum(content), "size": len(content), "pointerSize": 134}
        siblings.append(entry)
    tags = [f"license:{repository.card['license']}"] if "license" in repository.card else []
    document = {
        "_id": "0",
        "id": name,
        "modelId": name,
        "sha": repository.commit,
        "private": False,
        "gated": "manual" if repository.gated else False,
        "tags": tags,
        "cardData": repository.card,
        "siblings": siblings,
    }
    _send(request, 200, {"Content-Type": "application/json"}, json.dumps(document).encode())


def _tree(request: BaseHTTPRequestHandler, repository: Repository) -> None:
    """What snapshot_download asks for."""
    entries = []
    for path, content in repository.files.items():
        oid = hashlib.sha1(content, usedforsecurity=False).hexdigest() if is_large(content) else checksum(content)
        entry: dict[str, Any] = {"type": "file", "oid": oid, "size": len(content), "path": path}
        if is_large(content):
            entry["lfs"] = {"oid": checksum(content), "size": len(content), "pointerSize": 134}
        entries.append(entry)
    _send(request, 200, {"Content-Type": "application/json"}, json.dumps(entries).encode())


def _resolve(hub: Hub, request: BaseHTTPRequestHandler, name: str, path: str, signed_in: bool) -> None:
    repository = hub.repositories[name]
    if repository.gated and not signed_in:
        error = {"X-Error-Code": "GatedRepo", "X-Error-Message": f"Access to model {name} is restricted."}
        return _send(request, 401, error, b"")
    content = repository.files[path]
    headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{checksum(content)}"', "Accept-Ranges": "bytes"}
    if not is_large(content):
        if hub.wrong.get(path):
            hub.wrong[path] -= request.command == "GET"
            content = b"?" * len(content)
        return _send(request, 200, headers, content)
    headers |= {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{checksum(content)}"'}
    headers["Location"] = f"{hub.endpoint.replace('127.0.0.1', 'localhost')}/cdn/{name}/{path}"
    return _send(request, 302, headers, b"")


def _send_large(hub: Hub, request: BaseHTTPRequestHandler, content: bytes, path: str) -> None:
    if hub.status:
        return _send(request, hub.status, {"X-Error-Message": "The server is tired"}, b"")
    if hub.wrong.get(path):
        hub.wrong[path] -= 1
        content = content[:1000] + bytes(255 - b for b in content[1000:1100]) + content[1100:]
    if hub.short.get(path):
        content = content[: hub.short[path]]
    start, status, headers = 0, 200, {"Accept-Ranges": "bytes"}
    if match := re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", "")):
        start, status = int(match[1]), 206
        if start >= len(content):
            return _send(request, 416, {"Content-Range": f"bytes */{len(content)}"}, b"")
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
    request.send_response(status)
    for key, value in headers.items():
        request.send_header(key, value)
    request.send_header("Content-Length", str(len(content) - start))
    request.end_headers()
    if request.command == "HEAD":
        return None
    cuts = hub.cuts.get(path, [])
    end = min(len(content), start + cuts.pop(0)) if cuts else len(content)
    for position in range(start, end, _CHUNK):
        request.wfile.write(content[position : min(position + _CHUNK, end)])
        request.wfile.flush()
        time.sleep(hub.seconds_per_chunk)
    if end < len(content):
        request.close_connection = True
        with suppress(OSError):
            request.connection.shutdown(2)
    return None


def _send(request: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    request.send_response(status)
    for key, value in headers.items():
        request.send_header(key, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)
