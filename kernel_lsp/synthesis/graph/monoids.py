"""What a scan may come to: one entry per monoid. A further monoid is a further entry, and a lowering in ``operators/scans.py``.

``Scan.kind`` and ``PrefixScan.kind`` are keys of ``MONOIDS``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Monoid:
    """An associative operation with a neutral element.

    ``name``: what variables and formulas call the scan. ``neutral``: the scan of no elements. ``combine``: the key of
    ``functions.FUNCTIONS`` that gives two elements' result. ``scan``: Triton's own scan; where it has none, empty:
    ``tl.associative_scan`` takes ``combine`` as a helper of the generated file (``printing/helpers.py``).
    """

    name: str
    neutral: float
    combine: str
    scan: str = ""


MONOIDS: dict[str, Monoid] = {
    "sum": Monoid("cumsum", 0.0, "add", "tl.cumsum"),
    "prod": Monoid("cumprod", 1.0, "mul", "tl.cumprod"),
    "logaddexp": Monoid("logcumsumexp", -math.inf, "logaddexp"),
}
