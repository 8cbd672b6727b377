"""How many times faster, and how that is written: the same figures in lenses, hovers and reports.

The standard library alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_lsp.schema import Measurement, ShapeMeasurement


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


def _mean(ratios: list[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None and 0 < ratio < math.inf]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None
