"""What GPUs can do, by their vendors' figures: sizes that limit a kernel, and rates that limit its time.

Rates are dense: data sheets of NVIDIA since Hopper and of the L4 give twice as much, with structured sparsity. Limits of a
multiprocessor are those of its compute capability in NVIDIA's CUDA C++ Programming Guide, table "Technical
Specifications per Compute Capability"; a program there is a thread block, and can use all shared memory but 1 KB. How many
multiprocessors there are, and the L2 cache, is what drivers report of these devices, where no document is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_KB, _MB = 1 << 10, 1 << 20
_TERA = 1e12


@dataclass(frozen=True)
class Target:
    """A GPU that kernels are written for.

    ``device``: the name that its driver reports. ``architecture``: the compiler's name for it, ``capability``: NVIDIA's
    compute capability, None for others. ``shared_memory``: bytes that one program can use. ``registers`` (of 32 bits),
    ``warps``, ``threads`` and ``programs``: the most that a multiprocessor holds at a time. ``l2``: bytes.
    ``bandwidth`` of the GPU's memory and ``l2_bandwidth`` (an estimate): bytes/s. ``rates``: FLOP/s, for "float32" (outside the tensor cores), "tf32", "float16", "bfloat16"
    and, where the hardware has it, "fp8"; products with float32 accumulation. ``note``: which of these are not the
    device's own figures, and whose they are; empty where all are.
    """

    name: str
    device: str
    architecture: str
    capability: tuple[int, int] | None
    multiprocessors: int
    shared_memory: int
    registers: int
    warp_size: int
    warps: int
    threads: int
    programs: int
    l2: int
    bandwidth: float
    l2_bandwidth: float
    rates: Mapping[str, float] = field(hash=False)
    note: str = ""

    def rate(self, number: str) -> float:
        """FLOP/s of products of this sort of number, a key of ``rates`` or a dtype's name; without fp8 float16's."""
        if number.startswith(("fp8", "float8")):
            return self.rates.get("fp8", self.rates["float16"])
        return self.rates[number]


@dataclass(frozen=True)
class Limits:
    """What a multiprocessor of a compute capability has, and the floating-point operations that it does in a cycle.

    ``per_cycle`` has the keys of ``Target.rates``. The data sheets follow from it with the device's number of
    multiprocessors and its clock.
    """

    shared_memory: int
    warps: int
    programs: int
    per_cycle: Mapping[str, int]
    registers: int = 65536


def _per_cycle(float32: int, tf32: int, half: int, fp8: int | None = None) -> dict[str, int]:
    found = {"float32": float32, "tf32": tf32, "float16": half, "bfloat16": half}
    return found | ({"fp8": fp8} if fp8 is not None else {})


#: compute capability → its limits (CUDA C++ Programming Guide); cycles from the whitepapers on A100, GA102, Ada, H100 and
#: from B200's data sheet. The tensor cores of GeForce cards with 8.6 and 8.9 do half as much with float32 accumulation.
LIMITS: dict[tuple[int, int], Limits] = {
    (8, 0): Limits(163 * _KB, 64, 32, _per_cycle(128, 1024, 2048)),
    (8, 6): Limits(99 * _KB, 48, 16, _per_cycle(256, 512, 1024)),
    (8, 9): Limits(99 * _KB, 48, 24, _per_cycle(256, 512, 1024, 2048)),
    (9, 0): Limits(227 * _KB, 64, 32, _per_cycle(256, 2048, 4096, 8192)),
    (10, 0): Limits(227 * _KB, 64, 32, _per_cycle(256, 4096, 8192, 16384)),
}


#: Bytes that a multiprocessor gets from L2 in a cycle, taken to be what 5.5 TB/s on an H100 come to (132 of them at 1.755 GHz).
#: Data sheets do not give it, and it was not measured here: it only ranks schedules.
_FROM_L2 = 5.5e12 / (132 * 1.755e9)


def l2_bandwidth(multiprocessors: int, clock: float, bandwidth: float) -> float:
    """An estimate in bytes/s, not below the ``bandwidth`` of memory, which comes through L2; ``clock`` in Hz."""
    return max(multiprocessors * clock * _FROM_L2, bandwidth)


def _nvidia(
    name: str,
    device: str,
    capability: tuple[int, int],
    multiprocessors: int,
    clock: float,
    l2: int,
    bandwidth: float,
    rates: Mapping[str, float],
) -> Target:
    limits = LIMITS[capability]
    return Target(
        name=name,
        device=device,
        architecture=f"sm_{capability[0]}{capability[1]}",
        capability=capability,
        multiprocessors=multiprocessors,
        shared_memory=limits.shared_memory,
        registers=limits.registers,
        warp_size=32,
        warps=limits.warps,
        threads=32 * limits.warps,
        programs=limits.programs,
        l2=l2,
        bandwidth=bandwidth,
        l2_bandwidth=l2_bandwidth(multiprocessors, clock, bandwidth),
        rates=rates,
    )


def _rates(float32: float, tf32: float, half: float, fp8: float | None = None) -> dict[str, float]:
    """In TFLOP/s."""
    found = {"float32": float32, "tf32": tf32, "float16": half, "bfloat16": half}
    return {kind: rate * _TERA for kind, rate in (found | ({"fp8": fp8} if fp8 is not None else {})).items()}


#: NVIDIA A100 data sheet (80 GB SXM); 108 multiprocessors and 40 MB: A100 whitepaper.
A100 = _nvidia(
    "A100", "NVIDIA A100-SXM4-80GB", (8, 0), 108, 1.41e9, 40 * _MB, 2.039e12, _rates(float32=19.5, tf32=156, half=312)
)

#: NVIDIA H100 data sheet (SXM) and H100 whitepaper: dense rates, rounded to TFLOP/s; 132 multiprocessors, 50 MB.
H100 = _nvidia(
    "H100",
    "NVIDIA H100 80GB HBM3",
    (9, 0),
    132,
    1.755e9,
    50 * _MB,
    3.35e12,
    _rates(float32=67, tf32=495, half=989, fp8=1979),
)

#: NVIDIA H200 data sheet (SXM): H100's rates with other memory. The driver reports 60 MB of L2.
H200 = _nvidia("H200", "NVIDIA H200", (9, 0), 132, 1.755e9, 60 * _MB, 4.8e12, H100.rates)

#: NVIDIA Blackwell data sheet, HGX B200 column, halved where it is with sparsity; 126 MB: Blackwell Tuning Guide.
B200 = _nvidia(
    "B200", "NVIDIA B200", (10, 0), 148, 1.855e9, 126 * _MB, 7.7e12, _rates(float32=75, tf32=1100, half=2250, fp8=4500)
)

#: NVIDIA L4 data sheet, halved where it is with sparsity; 58 multiprocessors (7424 cores) and 48 MB: AD104 in the Ada
#: whitepaper.
L4 = _nvidia(
    "L4", "NVIDIA L4", (8, 9), 58, 2.04e9, 48 * _MB, 0.3e12, _rates(float32=30.3, tf32=60, half=121, fp8=242.5)
)

#: NVIDIA Ada GPU Architecture whitepaper, GeForce RTX 4090, with float32 accumulation and without sparsity.
RTX_4090 = _nvidia(
    "RTX 4090",
    "NVIDIA GeForce RTX 4090",
    (8, 9),
    128,
    2.52e9,
    72 * _MB,
    1.008e12,
    _rates(float32=82.6, tf32=82.6, half=165.2, fp8=330.3),
)

#: AMD Instinct MI300X data sheet; per compute unit: ROCm's "AMD GPU specifications" (64 KiB of LDS, a 512 KiB register
#: file, 4 MB of L2 on each of 8 dies). The 256 MB behind the L2 are not counted. 2048 threads: HIP's device properties; 16 programs of more than
#: one warp: LLVM's AMDGPU backend.
MI300X = Target(
    name="MI300X",
    device="AMD Instinct MI300X",
    architecture="gfx942",
    capability=None,
    multiprocessors=304,
    shared_memory=64 * _KB,
    registers=512 * _KB // 4,
    warp_size=64,
    warps=32,
    threads=2048,
    programs=16,
    l2=32 * _MB,
    bandwidth=5.3e12,
    l2_bandwidth=l2_bandwidth(304, 2.1e9, 5.3e12),
    rates=_rates(float32=163.4, tf32=653.7, half=1307.4, fp8=2614.9),
)

#: name → target
NAMED: dict[str, Target] = {one.name: one for one in (A100, H100, H200, B200, L4, RTX_4090, MI300X)}

#: what kernels are written for where no other target is named
DEFAULT = H100


def named(name: str) -> Target | None:
    """The target called ``name``, as in "H100" or as its driver names it, in capitals or not; None for all others."""
    wanted = name.casefold()
    return next((one for one in NAMED.values() if wanted in (one.name.casefold(), one.device.casefold())), None)
