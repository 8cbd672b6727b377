"""The GPU that a schedule is made for: one of the named ones, or what the driver says of the one that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from kernel_lsp.targets import DEFAULT, LIMITS, MI300X, NAMED, Target, l2_bandwidth, named

from ..graph.lowered import Float8

__all__ = ["Target", "float8_of", "from_device", "target"]


def target(name: str | None = None) -> Target:
    """The target called ``name``, as in "H100" or as its driver names it; without a name the default.

    Of a name without figures the default again, with a note that says so.
    """
    if name is None:
        return DEFAULT
    if (known := named(name)) is not None:
        return known
    return replace(
        DEFAULT, note=f"no figures are known for {name}; those of {DEFAULT.name} are used (known: {', '.join(NAMED)})"
    )


def float8_of(on: Target) -> Float8:
    """What Triton does with torch's float8 on a GPU.

    NVIDIA's read and multiply it from compute capability 8.9 on. There Triton still rounds float32 to float16 first, towards
    zero, and so to another number now and then; from 9.0 on it rounds once. AMD's GPUs have other formats.
    """
    if on.capability is None or on.capability < (8, 9):
        return ""
    return "rounded" if on.capability >= (9, 0) else "read"


def from_device(device: torch.device) -> Target:
    """The target that ``device`` is; the default where it is no GPU.

    Of a GPU without figures here: sizes as its driver reports them, rates from its clock and compute capability, or
    another GPU's; the note says which. Initialises CUDA: a process that forks others must not call it.
    """
    if device.type != "cuda":
        return DEFAULT
    properties = torch.cuda.get_device_properties(device)
    known = next((one for one in NAMED.values() if one.device == properties.name), None)
    if known is not None and known.multiprocessors == properties.multi_processor_count:
        return known  # else it is a part of one
    return _estimated(properties, amd=torch.version.hip is not None)


def _estimated(properties: Any, *, amd: bool) -> Target:
    """A target from what the driver reports. AMD's "compute capability" is another number than NVIDIA's."""
    nearest = MI300X if amd else DEFAULT
    capability = None if amd else (properties.major, properties.minor)
    limits = LIMITS.get(capability) if capability is not None else None
    warp = getattr(properties, "warp_size", nearest.warp_size)
    threads = getattr(properties, "max_threads_per_multi_processor", nearest.threads)
    shared = limits.shared_memory if limits else properties.shared_memory_per_block  # without opting in to more
    bandwidth = None if amd else _bandwidth(properties)
    moved = bandwidth or nearest.bandwidth
    clock = getattr(properties, "clock_rate", 0) * 1e3  # Hz
    rates = _rates(properties, clock, limits.per_cycle) if limits is not None and clock else None
    return Target(
        name=properties.name,
        device=properties.name,
        architecture=properties.gcnArchName.partition(":")[0] if amd else f"sm_{properties.major}{properties.minor}",
        capability=capability,
        multiprocessors=properties.multi_processor_count,
        shared_memory=getattr(properties, "shared_memory_per_block_optin", None) or shared,
        registers=getattr(properties, "regs_per_multiprocessor", None) or nearest.registers,
        warp_size=warp,
        warps=threads // warp,
        threads=threads,
        programs=limits.programs if limits else nearest.programs,
        l2=getattr(properties, "L2_cache_size", 0) or nearest.l2,
        bandwidth=moved,
        l2_bandwidth=l2_bandwidth(properties.multi_processor_count, clock, moved) if clock else nearest.l2_bandwidth,
        rates=rates or nearest.rates,
        note=_note(properties.name, nearest.name, bandwidth, rates),
    )


def _bandwidth(properties: Any) -> float | None:
    """Bytes/s: two transfers a cycle over the whole bus; None where the driver does not tell (kHz, bits)."""
    clock, width = getattr(properties, "memory_clock_rate", 0), getattr(properties, "memory_bus_width", 0)
    return 2 * clock * 1e3 * width / 8 or None


def _rates(properties: Any, clock: float, per_cycle: Mapping[str, int]) -> dict[str, float]:
    cycles = properties.multi_processor_count * clock
    halved = "GeForce" in properties.name and properties.major == 8  # with float32 accumulation
    return {kind: cycles * n / (2 if halved and kind != "float32" else 1) for kind, n in per_cycle.items()}


def _note(device: str, other: str, bandwidth: float | None, rates: dict[str, float] | None) -> str:
    borrowed = [text for text, own in (("bandwidth", bandwidth), ("rates", rates)) if own is None]
    if not borrowed:
        return f"the bandwidth and rates of {device} are computed from its clocks"
    return f"no figures are known for the {' and '.join(borrowed)} of {device}; those of {other} are used"
