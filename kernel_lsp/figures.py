"""How many times faster, when that counts as slower, and how it is written: the same everywhere.

The standard library alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_lsp.schema import Measurement, ShapeMeasurement, Timing, Verdict

#: share by which eager's times of then and now may differ for a time beside the one to stand beside the other
AGREES = 0.05


def factor(ratio: float) -> str:
    """``2.31×``; with fewer digits where they would mean nothing."""
    return f"{ratio:.2f}×" if ratio < 10 else f"{ratio:.1f}×" if ratio < 100 else f"{ratio:.0f}×"


def speedups(measurement: Measurement | None) -> tuple[float | None, float | None]:
    """How many times faster than eager and than torch.compile: geometric means over the shapes timed."""
    shapes = measurement.shapes if measurement is not None else []
    return _mean([over_eager(s) for s in shapes]), _mean([over_compiled(s) for s in shapes])


def over_eager(shape: ShapeMeasurement) -> float | None:
    return shape.eager.median / shape.kernel.median if shape.eager and shape.kernel and shape.kernel.median else None


def over_compiled(shape: ShapeMeasurement) -> float | None:
    return (
        shape.compiled.median / shape.kernel.median if shape.compiled and shape.kernel and shape.kernel.median else None
    )


def agrees(then: float, now: float) -> bool:
    """Whether eager took the same time then and now, as far as another time that was taken beside it goes."""
    return abs(then - now) <= AGREES * now


def skipped_text(verdict: Verdict | None) -> str:
    """``10 passed, 14 skipped``: the checks of a verdict for which some were left out; "" where none was."""
    if verdict is None or not verdict.skipped:
        return ""
    return f"{sum(check.passed for check in verdict.checks)} passed, {len(verdict.skipped)} skipped"


def note_if_slower(verdict: Verdict, kernel: Timing | None, name: str, other: Timing | None) -> None:
    """Make a verdict of "ok" one of "slower" where the kernel is, than ``other``, which is ``name``'s time.

    Slower means beyond the spread: its 20th percentile above the other's 80th.
    """
    if kernel and other and verdict.status == "ok" and kernel.low > other.high:
        verdict.status = "slower"
        verdict.reason = f"correct, but {kernel.median:.1f} µs against {other.median:.1f} µs of {name}"


def _mean(ratios: list[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None and 0 < ratio < math.inf]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None
