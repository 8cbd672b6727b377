"""How many times faster, when that counts as slower, and how it is written: the same everywhere.

The standard library alone.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from kernel_lsp.schema import EXAMPLE

if TYPE_CHECKING:
    from kernel_lsp.schema import Measurement, OfExample, Ratio, ShapeMeasurement, SpeedComparison, Timing, Verdict

#: share by which eager's times of then and now may differ for a time beside the one to stand beside the other
AGREES = 0.05


def factor(ratio: float) -> str:
    """``2.31×``; with fewer digits where they would mean nothing."""
    return f"{ratio:.2f}×" if ratio < 10 else f"{ratio:.1f}×" if ratio < 100 else f"{ratio:.0f}×"


def speedups(measurement: Measurement | None) -> tuple[float | None, float | None]:
    """How many times faster than eager and than torch.compile.

    Than eager: over the recorded shapes, weighted by their calls (``mixed``), where some were timed. Else, and always than
    torch.compile, geometric means over the shapes timed; torch.compile is timed at the example's alone.
    """
    shapes = measurement.shapes if measurement is not None else []
    mix = mixed(measurement)
    eager = mix[0].median / mix[1].median if mix is not None else _mean([over_eager(s) for s in shapes])
    return eager, _mean([over_compiled(s) for s in shapes])


def mixed(measurement: Measurement | None) -> tuple[Timing, Timing] | None:
    """Eager's and the kernel's microseconds of a call over the recorded shapes, each weighted by how often it came.

    None where none of them was timed.
    """
    weighted = weighted_shapes(measurement)
    if not weighted:
        return None
    calls = [count for count, _, _ in weighted]
    return _weighted(calls, [eager for _, eager, _ in weighted]), _weighted(
        calls, [kernel for _, _, kernel in weighted]
    )


def _weighted(calls: list[int], timings: list[Timing]) -> Timing:
    """The mean of times, each counted as often as its calls."""
    means = {
        name: sum(count * getattr(timing, name) for count, timing in zip(calls, timings, strict=True)) / sum(calls)
        for name in ("median", "low", "high")
    }
    return dataclasses.replace(timings[0], **means, runs=min(timing.runs for timing in timings))


def weighted_shapes(measurement: Measurement | None) -> list[tuple[int, Timing, Timing]]:
    """(calls, eager, kernel) of each recorded shape that was timed."""
    return [
        (shape.calls, shape.eager, shape.kernel)
        for shape in (measurement.shapes if measurement is not None else [])
        if shape.calls and shape.eager and shape.kernel and shape.kernel.median
    ]


def mix_words(measurement: Measurement | None) -> str:
    """``over 3 recorded shapes of train.py, weighted by calls``: what a speedup over eager is about.

    "" where no recorded shape was timed: then it is about the example's.
    """
    count = len(weighted_shapes(measurement))
    if not count or measurement is None:
        return ""
    of = f" of {measurement.recorded.source}" if measurement.recorded and measurement.recorded.source else ""
    return f"over {count} recorded shapes{of}, weighted by calls" if count > 1 else f"at the recorded shape{of}"


def mix_share(measurement: Measurement | None) -> float | None:
    """The share of the class's recorded time that the timed shapes stand for; None where that is not known."""
    found = measurement.recorded if measurement is not None and weighted_shapes(measurement) else None
    return found.share if found is not None else None


def over_eager(shape: ShapeMeasurement) -> float | None:
    """How many times faster than eager the kernel was, by medians; None where one of them was not timed."""
    return shape.eager.median / shape.kernel.median if shape.eager and shape.kernel and shape.kernel.median else None


def over_compiled(shape: ShapeMeasurement) -> float | None:
    """How many times faster than torch.compile the kernel was, by medians; None where one of them was not timed."""
    return (
        shape.compiled.median / shape.kernel.median if shape.compiled and shape.kernel and shape.kernel.median else None
    )


def agrees(then: float, now: float) -> bool:
    """Whether eager took the same time then and now, as far as another time that was taken beside it goes."""
    return abs(then - now) <= AGREES * now


def error_check_words(verdict: Verdict) -> str:
    """The check in which the largest error was; "" for the one on the example inputs, and where it is not known."""
    return verdict.error_check if verdict.error and verdict.error_check != EXAMPLE else ""


def errors_on_the_example(verdict: Verdict) -> tuple[float | None, float | None]:
    """(the kernel's error on the example inputs, eager's); the largest of all checks where that is all that is known."""
    if verdict.example_error is None:
        return verdict.error, verdict.eager_error
    return verdict.example_error, verdict.example_eager_error


def example_lines(verdict: Verdict) -> list[str]:
    """What was found with each of several examples: ``example 2 (x: bfloat16[8, 64]): ok, error 1.2e-03, 2.31× eager (9.2 → 4.0 µs)``."""
    return [f"example {number} ({one.inputs}): {_of_example(one)}" for number, one in enumerate(verdict.examples, 1)]


def _of_example(one: OfExample) -> str:
    if one.status == "eager":
        return "runs eagerly, no envelope holds for it"
    words = one.status + (f": {one.reason}" if one.reason else "")
    words += f", error {one.error:.1e}" if one.error is not None else ""
    words += f" (eager's {one.eager_error:.1e})" if one.error is not None and one.eager_error is not None else ""
    if one.eager is not None and one.kernel is not None and one.kernel.median:
        times = f"{one.eager.median:.1f} → {one.kernel.median:.1f} µs"
        words += f", {factor(one.eager.median / one.kernel.median)} eager ({times})"
    return words


def skipped_text(verdict: Verdict | None) -> str:
    """``10 passed, 14 skipped``: the checks of a verdict for which some were left out; "" where none was."""
    if verdict is None or not verdict.skipped:
        return ""
    return f"{sum(check.passed for check in verdict.checks)} passed, {len(verdict.skipped)} skipped"


def note_if_slower(verdict: Verdict, kernel: Timing | None, name: str, other: Timing | None, where: str = "") -> None:
    """Make a verdict of "ok" one of "slower" where the kernel is, than ``other``, which is ``name``'s time.

    Slower means beyond the spread: its 20th percentile above the other's 80th. ``where``: at which shapes, if it has to be said.
    """
    if kernel and other and verdict.status == "ok" and kernel.low > other.high:
        verdict.status = "slower"
        verdict.reason = f"correct, but {kernel.median:.1f} µs against {other.median:.1f} µs of {name}"
        verdict.reason += f" {where}" if where else ""


def note_if_slower_than_eager(verdict: Verdict, measurement: Measurement) -> None:
    """``note_if_slower`` over the recorded shapes together, weighted by calls; at the example's where none was timed."""
    mix = mixed(measurement)
    if mix is not None:
        note_if_slower(verdict, mix[1], "eager", mix[0], mix_words(measurement))
    elif measurement.shapes:
        note_if_slower(verdict, measurement.shapes[0].kernel, "eager", measurement.shapes[0].eager)


def is_regression(found: SpeedComparison | None, percent: float) -> bool:
    """Whether the whole confidence interval has a kernel slower than the one before it by more than ``percent``.

    Times that were taken beside other work on the GPU tell nothing.
    """
    if found is None or found.ratio is None or found.beside:
        return False
    return found.ratio.low > 1 + percent / 100


def regression(measurement: Measurement | None, percent: float) -> str:
    """What to say of a kernel that lost more than ``percent`` of speed to the one before it; "" if it did not."""
    found = measurement.comparison if measurement is not None else None
    if found is None or not is_regression(found, percent):
        return ""
    assert found.ratio is not None
    times = f": {found.now.median:.1f} µs instead of {found.before.median:.1f} µs" if found.now and found.before else ""
    changed = f" Changed: {found.changed}." if found.changed else ""
    return (
        f"Slower than the kernel of {found.reached_at[:10] or 'before'}{times}. Timed in turn, {ratio_text(found.ratio)}."
        f"{changed}"
    )


def ratio_text(ratio: Ratio) -> str:
    """As in ``it takes 1.08× as long (99 % sure: 1.07× to 1.09×, 200 rounds)``."""
    interval = f"99 % sure: {ratio.low:.2f}× to {ratio.high:.2f}×, {ratio.rounds} rounds"
    return f"it takes {ratio.value:.2f}× as long ({interval})"


def _mean(ratios: list[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None and 0 < ratio < math.inf]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


#: the settings of ``precision`` but strict, as they are called where results are shown
PRECISIONS = {"tf32": "TF32", "half": "half precision"}


def precision_words(held_to: str) -> str:
    """``TF32`` for a kernel that is correct at that precision only; "" for a strict one."""
    return PRECISIONS.get(held_to, "")


def at_precision(held_to: str) -> str:
    """`` at TF32``, to be put behind "correct"; "" for a strict one."""
    words = precision_words(held_to)
    return f" at {words}" if words else ""


def less_exact(precision: str, wanted: str) -> bool:
    """Whether a setting ``precision`` allows larger errors than another one."""
    order = ["strict", *PRECISIONS]
    return precision in order and wanted in order and order.index(precision) > order.index(wanted)
