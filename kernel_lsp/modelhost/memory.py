"""How much memory a device has left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def free(device: Any) -> int:
    """Bytes that can be allocated on a ``torch.device``, those included that this process has cached."""
    if device.type != "cuda":
        return free_in_main_memory()
    import torch

    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + cached


def name(device: Any) -> str:
    """``the GPU (NVIDIA H100 80GB HBM3)`` or ``the CPU``."""
    if device.type != "cuda":
        return "the CPU"
    import torch

    return f"the GPU ({torch.cuda.get_device_name(device)})"


def free_in_main_memory() -> int:
    """Bytes that Linux says are available without swapping, or fewer where a control group allows fewer."""
    available = _meminfo("MemAvailable")
    if available is None:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    group = Path("/sys/fs/cgroup")
    try:
        most = int((group / "memory.max").read_text())  # "max" where there is no limit: ValueError
        used = int((group / "memory.current").read_text())
        reclaimable = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())["inactive_file"]
        return min(available, most - used + int(reclaimable))
    except (OSError, ValueError, KeyError):
        return available


def _meminfo(field: str) -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None
