"""Which quantisation suits the memory that is there, and whether memory and disk suffice."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.errors import TooLittleDisk, TooLittleMemory
from kernel_lsp.hub.catalogue import needed_bytes
from kernel_lsp.hub.memory import Memory, fits

#: Best first. Above Q8_0 nothing is gained that shows; below Q4_K_M code becomes noticeably worse.
RECOMMENDED = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M")


@dataclass(frozen=True)
class Choice:
    """The quantisation that is proposed, and the reason that is shown for it."""

    quantisation: str
    why: str  # a clause: "the best that fits into …"


def gigabytes(count: int) -> str:
    """As disks and downloads are sold: 4.9 GB; below that 12 MB, 3 kB."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}" if unit == 10**9 else f"{count / unit:.0f} {name}"
    return f"{count} bytes"


def propose(sizes: dict[str, int], memory: Memory, name: str) -> Choice:
    """The quantisation to take where the user named none. ``sizes``: quantisation → bytes of its file, not empty.

    On a GPU the best that fits; on a CPU the smallest of the good ones, since every token takes the time in which all weights are read.

    Raises:
        TooLittleMemory: not even the smallest fits.
    """
    ranked = [label for good in RECOMMENDED for label in sizes if label.upper() == good]
    ranked = ranked or sorted(sizes, key=lambda label: -sizes[label])
    gpu = memory.largest_gpu
    for label in ranked:
        if gpu and fits(needed_bytes(sizes[label]), memory) == "gpu":
            return Choice(label, f"the best that fits into the {gigabytes(gpu.total)} of {gpu.name}")
    smallest = min(ranked, key=lambda label: sizes[label])
    needed = needed_bytes(sizes[smallest])
    if fits(needed, memory) == "no":
        raise too_little_memory(name, needed, memory, sizes)
    why = "there is no NVIDIA GPU here" if gpu is None else f"none fits into the {gigabytes(gpu.total)} of {gpu.name}"
    return Choice(smallest, f"{why}, and on a CPU the smallest good one answers fastest")


def too_little_memory(name: str, needed: int, memory: Memory, sizes: dict[str, int]) -> TooLittleMemory:
    """The error, with the quantisations that would fit."""
    gpu = memory.largest_gpu
    there = f"{gigabytes(memory.ram)} of RAM and " + (
        f"{gigabytes(gpu.total)} on {gpu.name}" if gpu else "no NVIDIA GPU"
    )
    smaller = [label for label in sizes if fits(needed_bytes(sizes[label]), memory) != "no"]
    instead = f"Take {' or '.join(smaller)} instead" if smaller else "Take a smaller model, or one behind a server"
    return TooLittleMemory(name=name, needed=gigabytes(needed), there=there, instead=instead)


def check_disk(name: str, needed: int, folder: Path) -> None:
    """Check that the disk that ``folder`` is on, or will be, has ``needed`` bytes free.

    Raises:
        TooLittleDisk: it has less.
    """
    if _free(folder) < needed:
        raise too_little_disk(name, needed, folder)


def too_little_disk(name: str, needed: int, folder: Path) -> TooLittleDisk:
    """The error for a disk with less room than ``needed``, in bytes."""
    return TooLittleDisk(name=name, needed=gigabytes(needed), free=gigabytes(_free(folder)), path=str(folder))


def _free(folder: Path) -> int:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free
