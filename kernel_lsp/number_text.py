"""Formats numbers for people. A missing number, or NaN, is None and never a zero."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from kernel_lsp.class_schema import TensorSpec
from kernel_lsp.schema import Timing

#: cells without a figure
EMPTY = ("–", "")
_LEAST, _MOST = 1e-30, 1e30  # what is beyond was not measured, whatever it says
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def known(value: float | None) -> float | None:
    """A positive number that can be drawn, or None."""
    return value if value is not None and _LEAST < value < _MOST else None


def timed(timing: Timing | None) -> Timing | None:
    """A timing whose numbers can be drawn, or None."""
    return timing if timing is not None and all(map(known, (timing.low, timing.median, timing.high))) else None


def si(value: float, unit: str) -> str:
    """``2.96 TB/s``: three digits."""
    scale, prefix = next(((s, p) for s, p in _PREFIXES if value >= s), (1.0, ""))
    return f"{digits(value / scale)} {prefix}{unit}"


def digits(value: float) -> str:
    """Three digits: ``0.0123``, ``1.23``, ``12.3``, ``123``, ``1234``."""
    if value == 0:
        return "0"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}" if places < 7 else f"{value:.2e}"


def size(count: int) -> str:
    """``256 MiB``."""
    scale, unit = next(((s, u) for s, u in _BINARY if count >= s), (1, "bytes"))
    return f"{digits(count / scale) if scale > 1 else count} {unit}"


def share(value: float) -> str:
    """``96.2 %``; of the little, more digits."""
    return f"{100 * value:.1f} %" if value >= 0.001 else f"{100 * value:.1g} %"


def error(value: float | None) -> str:
    """``2.7e-07``, ``0``; "–" where it is not known."""
    if value is None:
        return "–"
    return "0" if value == 0 else f"{value:.1e}" if math.isfinite(value) else "not finite"


class Microseconds:
    """One unit and as many decimals for all the times of a chart."""

    def __init__(self, values: Sequence[float]) -> None:
        self.scale, self.unit = (1e3, "ms") if max(values, default=0) >= 1e3 else (1.0, "µs")
        least = min(values, default=1.0) / self.scale
        self.places = 1 if least >= 10 else 2 if least >= 1 else 3

    def bare(self, value: float) -> str:
        """A number of microseconds in the chart's unit, without it."""
        return f"{value / self.scale:.{self.places}f}"

    def tick(self, value: float) -> str:
        """A round number on an axis."""
        return f"{value / self.scale:g} {self.unit}" if value else "0"

    def __call__(self, value: float) -> str:
        """A number of microseconds in the chart's unit, with it."""
        return f"{self.bare(value)} {self.unit}"


def tensor(spec: TensorSpec) -> str:
    """``x float32[8, 1024, 4096]``."""
    return f"{spec.name} {spec.text}".lstrip()


def ticks(greatest: float, about: int = 4) -> list[float]:
    """Round numbers from 0 up to ``greatest``."""
    if greatest <= 0:
        return [0.0]
    magnitude = 10.0 ** math.floor(math.log10(greatest / about))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10, 20) if m * magnitude * about >= greatest * 0.999)
    return [i * step for i in range(int(greatest / step * 1.0001) + 1)]


def stop(text: str, otherwise: str = "") -> str:
    """With one full stop at its end; ``otherwise`` where there is no text."""
    text = text.strip() or otherwise
    return text if not text or text.endswith((".", "!", "?", "…")) else f"{text}."


def moment(stamp: str) -> str:
    """``2026-11-21 03:31 UTC`` from ISO 8601; another text stays as it is."""
    try:
        then = datetime.datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    if then.tzinfo is None:
        then = then.replace(tzinfo=datetime.UTC)
    return then.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
