"""The hover of a class with a kernel, as Markdown."""

from __future__ import annotations

import collections
import datetime
from typing import TYPE_CHECKING

from kernel_lsp import claims, schema
from kernel_lsp.naming import kernel_class
from kernel_lsp.speedup import (
    error_check_words,
    errors_on_the_example,
    factor,
    mix_share,
    mix_words,
    over_compiled,
    over_eager,
    speedups,
)

from ..model.class_state import ClassState, as_it_was
from .one_line import wanted_words

if TYPE_CHECKING:
    from kernel_lsp.class_schema import TensorSpec
    from kernel_lsp.schema import Measurement, ShapeMeasurement, Timing, Verdict

NOT = "not measured"


def hover_markdown(class_name: str, s: ClassState, links: str, now: datetime.datetime | None = None) -> str:
    """The hover of a class with a kernel: what was validated where and when, one line of speed, one of accuracy, and ``links``.

    What the diagnostic says (that it is correct, why it is wrong, why it is stale) is not said again. The report has the rest.
    """
    assert s.kernel is not None
    kernel = kernel_class(s.kernel.class_name)
    lines = [f"⚠ {wanted_words(class_name, s)}"] if s.wanted else []
    if s.before is not None:
        lines.append("↻ **Not validated with the device and versions of now.** What follows is from then.")
        s = as_it_was(s)
    elif s.stale and s.verdict is not None and not s.outdated:
        lines.append("↻ **Stale.** What follows is about the version before.")
    verdict = s.verdict
    if verdict is None:
        lines.append("↻ **Stale**, and not validated here." if s.stale else "? **Not validated here.**")
        return "\n\n".join([*lines, links])
    lines.append(f"{about(kernel, s)}{where(s, now)}")
    if s.correct:
        lines += [*speed_lines(s), accuracy(verdict)]
    return "\n\n".join([*lines, links])


def about(kernel: str, s: ClassState) -> str:
    """As in ``✓ **RMSNormTriton** · ``, before where it was validated: the mark is the verdict, which the diagnostic has in words."""
    assert s.verdict is not None
    if s.outdated:
        return f"↻ **{kernel}** does not fit any more. {what_differs(s.verdict.reason)}".rstrip() + " "
    mark = "▼" if s.regression else "✓" if s.correct else "✗"
    return f"{mark} **{kernel}** · "


def what_differs(reason: str) -> str:
    """What was found of a kernel that is out of date, as a sentence; that it is, the diagnostic says."""
    before, marker, found = reason.partition(schema.GENERATE_AGAIN)
    words = found.strip().removeprefix("(").removesuffix(")") if marker else before
    return f"{words[0].upper()}{words[1:].rstrip('.')}." if words else ""


def speed_lines(s: ClassState) -> list[str]:
    """The speed as a table of one row; as a sentence over several shapes, and where nothing was timed here."""
    measurement = s.measurement
    if measurement is None or not measurement.shapes:
        return [claims.timed_elsewhere(s.claim) if s.claim is not None else "Speed not measured."]
    lines = [over_shapes(measurement) if len(measurement.shapes) > 1 else table(measurement.shapes[0])]
    return [*lines, f"⚠ Timed beside other work: {measurement.beside}."] if measurement.beside else lines


def over_shapes(measurement: Measurement) -> str:
    """As in ``**2.22×** eager over 2 recorded shapes of train.py, weighted by calls; **1.24×** torch.compile at the example.``."""
    eager, compiled = speedups(measurement)
    mix = mix_words(measurement)
    about = mix or f"over {len(measurement.shapes)} shapes"
    share = f" ({share:.0%} of its time there)".replace("%", " %") if (share := mix_share(measurement)) else ""
    words = f"**{factor(eager)}** eager {about}{share}" if eager else f"Speed over eager {NOT}"
    if compiled:
        words += f"; **{factor(compiled)}** torch.compile{' at the example' if mix else ''}"
    return f"{words}."


def table(shape: ShapeMeasurement) -> str:
    """The times at a shape, with a head."""
    eager, compiled = over_eager(shape), over_compiled(shape)
    cells = {
        "inputs": ", ".join(tensor(spec) for spec in shape.inputs) or "—",
        "eager": timing(shape.eager),
        "torch.compile": timing(shape.compiled),
        "kernel": timing(shape.kernel),
        "vs eager": factor(eager) if eager else NOT,
        "vs compile": factor(compiled) if compiled else NOT,
        "roofline": f"{shape.roofline_share:.0%}" if shape.roofline_share is not None else NOT,
    }
    rule = ["---", *["---:"] * (len(cells) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells, rule, cells.values()))


def tensor(spec: TensorSpec) -> str:
    """As in `` `float32[8, 1024, 4096]` ``."""
    return f"`{spec.text}`"


def timing(t: Timing | None) -> str:
    """The median with its spread, in microseconds or, from 10 ms, milliseconds."""
    if t is None:
        return NOT
    scale, unit = (1000.0, "ms") if t.median >= 10_000 else (1.0, "µs")
    return f"{t.median / scale:.1f} {unit} ({t.low / scale:.1f}–{t.high / scale:.1f})"


def _errors(error: float | None, eager: float | None) -> str:
    return f"{NOT if error is None else f'{error:.1e}'} (eager: {NOT if eager is None else f'{eager:.1e}'})"


def accuracy(verdict: Verdict) -> str:
    """One line: the error on the example inputs beside eager's own, the largest, and how many checks and examples there were."""
    if verdict.error is None:
        words = "Error against float64: not measured."
    else:
        words = f"Error against float64: {_errors(*errors_on_the_example(verdict))}"
        check = error_check_words(verdict)
        if check and verdict.example_error is not None:
            words += f", largest {_errors(verdict.error, verdict.eager_error)} in the check “{check}”"
        words += f", precision {verdict.precision}." if verdict.precision else "."
    counts = [f"{sum(check.passed for check in verdict.checks)} of {len(verdict.checks)} checks passed"]
    counts += [f"{len(verdict.skipped)} skipped"] if verdict.skipped else []
    counts += [f"{len(verdict.limits)} not possible here"] if verdict.limits else []
    words += f" {', '.join(counts)}." if verdict.checks else ""
    if verdict.examples:
        statuses = collections.Counter(one.status for one in verdict.examples)
        found = ", ".join(f"{count} {status}" for status, count in statuses.items())
        words += f" {len(verdict.examples)} examples: {found}."
    return words


def where(s: ClassState, now: datetime.datetime | None = None) -> str:
    """Device, versions and age of what was validated on this machine."""
    device = s.measurement.device if s.measurement is not None and s.measurement.device is not None else s.device
    measured = s.measurement.measured_at if s.measurement is not None else ""
    parts = [device.name if device is not None else "device not recorded"]
    if device is not None:
        parts += [f"torch {device.torch}"] if device.torch else []
        parts += [f"triton {device.triton}"] if device.triton else []
    parts.append(age(measured or s.validated_at, now))
    return " · ".join(parts)


def age(stamp: str, now: datetime.datetime | None = None) -> str:
    """``3 hours ago`` from an ISO 8601 time."""
    try:
        then = datetime.datetime.fromisoformat(stamp)
    except ValueError:
        return "time not recorded"
    if then.tzinfo is None:
        then = then.replace(tzinfo=datetime.UTC)
    seconds = ((now or datetime.datetime.now(datetime.UTC)) - then).total_seconds()
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
