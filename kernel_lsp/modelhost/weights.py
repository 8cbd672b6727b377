"""Weights from safetensors files straight to where they are needed, several reads at a time.

Why not ``from_pretrained``: to put weights on a GPU without going through a whole copy in main memory it needs accelerate,
and one thread that touches mapped pages reads at a fraction of what the page cache or a fast disk gives. Here each thread
reads into a pinned buffer of its own and copies from there on a stream of its own, so reading and copying overlap.
Format: a little-endian u64 with the length of a JSON header, the header, the tensors' bytes.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

THREADS = 8
CHUNK = 32 << 20  # bytes a thread reads at a time
_HEADER_LIMIT = 100 << 20  # what the format allows

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip


class Damaged(Exception):
    """A file is not what its header, or the index beside it, says. The text says which and how."""


@dataclass
class Weight:
    """Where a tensor lies: ``size`` bytes from ``offset`` of ``file``."""

    file: Path
    name: str
    dtype: torch.dtype
    shape: list[int]
    offset: int
    size: int


def find(folder: Path) -> list[Weight]:
    """The weights of a model in a folder, from its safetensors files; [] where it has none.

    Raises:
        Damaged: a file is missing, cut short, or has no valid header.
    """
    index = folder / "model.safetensors.index.json"
    if index.exists():
        try:
            placed: dict[str, str] = json.loads(index.read_text("utf-8"))["weight_map"]
        except (ValueError, KeyError, OSError) as error:
            raise Damaged(f"{index.name} does not parse ({error})") from None
        files = sorted(set(placed.values()))
    else:
        files = ["model.safetensors"] if (folder / "model.safetensors").exists() else []
        placed = {}
    weights = [weight for file in files for weight in _header(folder / file)]
    missing = set(placed) - {weight.name for weight in weights}
    if missing:
        raise Damaged(f"{len(missing)} tensors named in {index.name} are in none of the files, {min(missing)} for one")
    return weights


def _header(file: Path) -> list[Weight]:
    try:
        total = file.stat().st_size
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > min(total - 8, _HEADER_LIMIT):
                raise Damaged(f"{file.name} is cut short or no safetensors file")
            header: dict[str, Any] = json.loads(stream.read(length))
        header.pop("__metadata__", None)
        weights = []
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            weights.append(
                Weight(file, name, DTYPES[entry["dtype"]], entry["shape"], 8 + length + begin, end - begin)
            )  # fmt: skip
    except FileNotFoundError:
        raise Damaged(f"{file.name} is missing") from None
    except (ValueError, TypeError, AttributeError, KeyError, struct.error, OSError) as error:
        raise Damaged(f"{file.name} has no valid safetensors header ({type(error).__name__}: {error})") from None
    needed = max((weight.offset + weight.size for weight in weights), default=0)
    if needed > total:
        raise Damaged(f"{file.name} is cut short: {total:,} of {needed:,} bytes")
    return weights


def bytes_as(weights: Iterable[Weight], dtype: torch.dtype) -> int:
    """The memory that the weights take when their floating-point numbers are held as ``dtype``."""
    return sum(
        weight.size // weight.dtype.itemsize * dtype.itemsize if weight.dtype.is_floating_point else weight.size
        for weight in weights
    )


def read(
    weights: list[Weight],
    device: torch.device,
    dtype: torch.dtype,
    progress: Callable[[float], None],
    check: Callable[[], None],
) -> dict[str, torch.Tensor]:
    """The tensors by name, on ``device``, floating-point ones as ``dtype``.

    ``progress`` gets the fraction that is done and ``check`` raises to end it; both are called about once a ``CHUNK``.

    Raises:
        Damaged: a file ended early, or cannot be read.
    """
    total = sum(weight.size for weight in weights) or 1
    lock, done = threading.Lock(), [0]
    stop = threading.Event()
    local = threading.local()

    def advance(size: int) -> None:
        if stop.is_set():
            raise InterruptedError
        with lock:
            done[0] += size
            progress(done[0] / total)

    def one(weight: Weight) -> torch.Tensor:
        tensor = torch.empty(weight.shape, dtype=weight.dtype, device=device)
        try:
            with weight.file.open("rb", buffering=0) as file:
                if device.type == "cuda":
                    if not hasattr(local, "staging"):
                        local.staging = _Staging(device)
                    local.staging.fill(tensor, file.fileno(), weight, advance)
                else:
                    memory = _memory(tensor.data_ptr(), weight.size)
                    _read_into(memory, file.fileno(), weight, advance)
        except OSError as error:
            raise Damaged(f"{weight.file.name} cannot be read ({error.strerror or error})") from None
        return tensor.to(dtype) if tensor.is_floating_point() and tensor.dtype != dtype else tensor

    with ThreadPoolExecutor(THREADS) as pool:
        # Big ones first, so that no thread is left with one at the end.
        running = {pool.submit(one, w): w for w in sorted(weights, key=lambda w: -w.size)}
        try:
            left = set(running)
            while left:
                check()
                finished, left = wait(left, timeout=0.05, return_when=FIRST_EXCEPTION)
                for future in finished:
                    future.result()
        except BaseException:
            stop.set()
            for future in running:
                future.cancel()
            raise
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return {weight.name: future.result() for future, weight in running.items()}


def _memory(address: int, size: int) -> memoryview:
    """The bytes at an address, writable."""
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B") if size else memoryview(bytearray())


def _read_into(memory: memoryview, fd: int, weight: Weight, advance: Callable[[int], None]) -> None:
    """Fill ``memory`` with the tensor's bytes."""
    at = 0
    while at < weight.size:
        got = os.preadv(fd, [memory[at : at + CHUNK]], weight.offset + at)
        if not got:
            raise Damaged(f"{weight.file.name} ended early")
        at += got
        advance(got)


class _Staging:
    """Two pinned buffers of one thread, and the stream on which they are copied to the GPU in turn."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)
        self.buffers = [torch.empty(CHUNK, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
        self.copied = [torch.cuda.Event() for _ in self.buffers]
        self.turn = 0

    def fill(self, tensor: torch.Tensor, fd: int, weight: Weight, advance: Callable[[int], None]) -> None:
        target = tensor.view(-1).view(torch.uint8) if weight.size else tensor
        # The allocator may hand out memory that the default stream still uses.
        self.stream.wait_stream(torch.cuda.current_stream(tensor.device))
        at = 0
        while at < weight.size:
            self.turn ^= 1
            buffer, copied = self.buffers[self.turn], self.copied[self.turn]
            copied.synchronize()
            size = min(CHUNK, weight.size - at)
            got = os.preadv(fd, [_memory(buffer.data_ptr(), size)], weight.offset + at)
            if not got:
                raise Damaged(f"{weight.file.name} ended early")
            with torch.cuda.stream(self.stream):
                target[at : at + got].copy_(buffer[:got], non_blocking=True)
                copied.record(self.stream)
            at += got
            advance(got)
        # The conversion to another dtype, if any, runs on the default stream.
        torch.cuda.current_stream(tensor.device).wait_stream(self.stream)
