"""GPUs that kernels are scheduled for."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """``shared_memory``: bytes for one program; ``warps``, ``programs``: the most that one multiprocessor holds;
    bandwidths in bytes/s, ``rates`` in operations/s by the sort of number that is multiplied."""

    name: str
    multiprocessors: int
    shared_memory: int
    bandwidth: float
    l2_bandwidth: float
    warps: int = 64
    programs: int = 32
    rates: dict[str, float] = field(default_factory=dict)

    def rate(self, number: str) -> float:
        return self.rates[number]


H100 = Target(
    "H100",
    132,
    227 << 10,
    3.35e12,
    5.5e12,
    rates={"float32": 67e12, "tf32": 495e12, "float16": 989e12, "bfloat16": 989e12},
)
