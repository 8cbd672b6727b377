"""The memory that is there: RAM, and that of NVIDIA GPUs. Bytes throughout. Never hangs and never raises."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

#: A driver that wakes GPUs up takes a second or two; one that hangs is not waited for.
_PROBE_SECONDS = 5.0
#: What a model may take of it: the rest is the system's, the desktop's and the CUDA context's.
_USABLE_RAM, _USABLE_GPU = 0.85, 0.95

Place = Literal["gpu", "ram", "no"]


@dataclass(frozen=True)
class Gpu:
    """An NVIDIA GPU's memory, in bytes."""

    name: str
    total: int
    free: int


@dataclass(frozen=True)
class Memory:
    """Where a model could be loaded; bytes."""

    ram: int  # in total, or what the container may use; 0 if it cannot be told
    gpus: tuple[Gpu, ...] = ()

    @property
    def largest_gpu(self) -> Gpu | None:
        """The GPU with the most memory in total."""
        return max(self.gpus, key=lambda gpu: gpu.total, default=None)


def fits(needed: int, memory: Memory) -> Place:
    """Where a model that needs so much can run; by the memory in total, since what is free changes by the minute."""
    gpu = memory.largest_gpu
    if gpu and needed <= gpu.total * _USABLE_GPU:
        return "gpu"
    return "ram" if needed <= memory.ram * _USABLE_RAM else "no"


def memory_here() -> Memory:
    """RAM and GPUs of this machine, as they are now."""
    return Memory(_ram(), tuple(_gpus()))


def _ram(root: Path = Path("/")) -> int:
    """In total; where a container (cgroup 2 or 1) has less, what it has."""
    total = 0
    try:
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                total = int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        total = 0
    if not total and hasattr(os, "sysconf"):  # macOS
        try:
            total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError):
            total = 0
    for limit in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int((root / limit).read_text()))
        except (OSError, ValueError):  # "max": none
            continue
    return total


def _gpus(seconds: float = _PROBE_SECONDS) -> list[Gpu]:
    """What nvidia-smi tells; [] without it, or if it does not answer in time."""
    command = shutil.which("nvidia-smi")
    if command is None or os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1"):
        return []
    query = [command, "--query-gpu=index,uuid,name,memory.total,memory.free", "--format=csv,noheader,nounits"]
    # Into a file, not a pipe, and polled, not waited for: a child that the driver holds cannot even be killed.
    with tempfile.TemporaryFile("w+") as out:
        try:
            child = subprocess.Popen(query, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)
        except OSError:
            return []
        deadline = time.monotonic() + seconds
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if child.poll() is None:
            child.kill()
            return []
        out.seek(0)
        return parse_gpus(out.read(), os.environ) if child.returncode == 0 else []


def parse_gpus(text: str, environment: Mapping[str, str]) -> list[Gpu]:
    """The GPUs in nvidia-smi's lines ("0, GPU-…, NVIDIA H100, 81559, 81000", in MiB) that CUDA_VISIBLE_DEVICES leaves."""
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    shown = [word.strip() for word in visible.split(",")] if visible is not None else None
    gpus = []
    for line in text.splitlines():
        index, uuid, *name, total, free = (
            [cell.strip() for cell in line.split(",")] if line.count(",") >= 4 else [""] * 5
        )
        if not total.isdigit() or not free.isdigit():  # "[N/A]": it shares the machine's memory
            continue
        if shown is None or index in shown or any(word and uuid.startswith(word) for word in shown):
            gpus.append(Gpu(", ".join(name), int(total) << 20, int(free) << 20))
    return gpus
