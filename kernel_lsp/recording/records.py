"""What one run of a program showed, as data. On disk as JSON; times in microseconds unless they are called seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernel_lsp.schema import Timing

FORMAT = 1


@dataclass
class Shape:
    """One kind of call: its arguments (see ``hook/describing.py``) and how often it came.

    ``init``: the constructor's arguments; None where they are not known. ``modes``: "training", "grad", "inference",
    "autocast bfloat16". ``outside``: calls that the kernel in use left to eager.
    """

    args: list[Any]
    kwargs: dict[str, Any]
    init: dict[str, Any] | None = None
    modes: list[str] = field(default_factory=list)
    trained: bool = False  # a parameter requires gradients
    calls: int = 0
    root_calls: int = 0  # of these, the ones that no other module's call was around
    nested_calls: int = 0  # of these, the ones inside another call of the class
    outside: int = 0
    host: Timing | None = None
    device_time: Timing | None = None
    numbers: dict[str, list[float]] = field(default_factory=dict)  # position or name of a number → values it took

    @property
    def median(self) -> float | None:
        """Microseconds of one call: on the GPU where it was timed there."""
        timing = self.device_time or self.host
        return timing.median if timing is not None else None


@dataclass
class ClassRecord:
    """One class of the user's. ``seconds``: in its calls, those inside another call of the class left out."""

    name: str  # dotted: "Outer.Inner"
    module: str
    file: str
    calls: int = 0
    others: int = 0  # calls with shapes beyond those that are kept
    kernel_calls: int = 0  # of these, the ones of the generated kernel's class
    seconds: float = 0.0
    shapes: list[Shape] = field(default_factory=list)  # the most time first


@dataclass
class Run:
    """One run of one command. ``forward_seconds``: in the outermost calls of modules."""

    command: str
    script: str  # as a person calls it: "train.py", "pkg.train"
    root: str
    at: str = ""  # ISO 8601, UTC
    status: int = 0
    seconds: float = 0.0
    forward_seconds: float = 0.0
    on_gpu: bool = False
    torch: str = ""
    compiled: int = 0  # graphs of torch.compile, inside which modules are not called one by one
    processes: int = 0
    classes: list[ClassRecord] = field(default_factory=list)
    format: int = FORMAT
