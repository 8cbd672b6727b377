"""What was measured, as Markdown: the hover's table."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from kernel_lsp import claims
from kernel_lsp.figures import (
    at_precision,
    error_check_words,
    example_lines,
    factor,
    mix_share,
    mix_words,
    over_compiled,
    over_eager,
    speedups,
)
from kernel_lsp.naming import kernel_class

from ..model.class_state import ClassState, as_it_was
from .one_line import wanted_words
from .titles import validate_title

if TYPE_CHECKING:
    from kernel_lsp.class_schema import TensorSpec
    from kernel_lsp.schema import Measurement, ShapeMeasurement, Timing, Verdict

NOT = "not measured"
_STATUS = {"ok": "is correct", "slower": "is correct, but no faster", "outdated": "is out of date"}


def hover_markdown(class_name: str, s: ClassState, now: datetime.datetime | None = None) -> str:
    """The hover of a class with a kernel: verdict, table, where and when, and a link to the file."""
    assert s.kernel is not None and s.kernel_path is not None
    file = f"[{s.kernel_path.name}]({s.kernel_path.as_uri()})"
    kernel = kernel_class(s.kernel.class_name)
    lines = []
    if s.before is not None:
        lines.append(f"↻ **Validated {s.changed}.** What follows is from then.\n")
        lines.append(f"The action “{validate_title(class_name)}” validates it again.\n")
        s = as_it_was(s)
    verdict = s.verdict
    if s.wanted:
        lines.append(f"⚠ {wanted_words(class_name, s)}\n")
    if s.stale:
        lines.append(f"**Stale.** {s.stale} What follows is about the version before.\n")
    if verdict is None and s.claim is not None:
        lines.append(f"? **Not validated here.** The file {claims.said(s.claim)}.\n")
        lines.append(f"The action “{validate_title(class_name)}” validates it on this machine.\n")
        lines.append(file)
        return "\n".join(lines)
    if verdict is None:
        lines.append(f"{file} holds no verdict.\n")
    else:
        mark = "✓" if s.correct else "↻" if s.outdated else "✗"
        words = _STATUS.get(verdict.status, f"is not usable ({verdict.status})")
        words = words.replace("is correct", f"is correct{at_precision(verdict.held_to)}")
        reason = f": {verdict.reason}" if verdict.reason else "."
        lines.append(f"{mark} **{kernel}** {words}{reason}\n")
        if s.correct or (s.measurement is not None and s.measurement.shapes):
            lines += measurement_lines(s.measurement)  # why a wrong kernel was not timed is plain
        lines.append(accuracy(verdict) + "\n")
        if verdict.examples:
            lines += [*(f"- {line}" for line in example_lines(verdict)), ""]
    if s.claim is not None:
        lines.append(claims.timed_elsewhere(s.claim) + "\n")
    if s.regression:
        lines.append(f"⚠ {s.regression}\n")
    lines.append(where(s, now) + "\n")
    lines.append(file)
    return "\n".join(lines)


def measurement_lines(measurement: Measurement | None) -> list[str]:
    """The table of shapes, or why there is none."""
    if measurement is None or not measurement.shapes:
        why = measurement.missing if measurement is not None and measurement.missing else "no reason was given"
        return [f"Speed not measured: {why.rstrip('.')}.", ""]
    weighted = any(shape.calls for shape in measurement.shapes)
    lines = [
        *mix_lines(measurement),
        "| inputs |"
        + (" calls |" if weighted else "")
        + " eager | torch.compile | kernel | vs eager | vs compile | roofline |",
        "| --- |" + (" ---: |" if weighted else "") + " ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_row(shape, weighted) for shape in measurement.shapes),
        "",
    ]
    if measurement.beside:
        lines += [f"⚠ Timed beside other work: {measurement.beside}.", ""]
    if measurement.compiled_missing:
        lines += [f"torch.compile not measured: {measurement.compiled_missing.rstrip('.')}.", ""]
    if measurement.missing:
        lines += [f"Not measured: {measurement.missing.rstrip('.')}.", ""]
    return lines


def mix_lines(measurement: Measurement) -> list[str]:
    """The speed over the recorded shapes, and which of these were not timed."""
    lines = []
    eager, _ = speedups(measurement)
    if eager and (words := mix_words(measurement)):
        share = mix_share(measurement)
        part = f" ({share:.0%} of its time there)".replace("%", " %") if share else ""
        lines += [f"**{factor(eager)}** eager {words}{part}.", ""]
    if measurement.recorded is not None and measurement.recorded.left_out:
        left_out = "; ".join(measurement.recorded.left_out)
        lines += [f"Recorded from {measurement.recorded.source} and not timed: {left_out}.", ""]
    return lines


def _row(shape: ShapeMeasurement, weighted: bool) -> str:
    eager, compiled = over_eager(shape), over_compiled(shape)
    share = f"{shape.roofline_share:.0%}" if shape.roofline_share is not None else NOT
    cells = [
        ", ".join(tensor(spec) for spec in shape.inputs) or "—",
        *([f"{shape.calls:,}" if shape.calls else "–"] if weighted else []),
        timing(shape.eager),
        timing(shape.compiled),
        timing(shape.kernel),
        factor(eager) if eager else NOT,
        factor(compiled) if compiled else NOT,
        share,
    ]
    return "| " + " | ".join(cells) + " |"


def tensor(spec: TensorSpec) -> str:
    """As in `` `float32[8, 1024, 4096]` ``."""
    return f"`{spec.text}`"


def timing(t: Timing | None) -> str:
    """The median with its spread, in microseconds or, from 10 ms, milliseconds."""
    if t is None:
        return NOT
    scale, unit = (1000.0, "ms") if t.median >= 10_000 else (1.0, "µs")
    return f"{t.median / scale:.1f} {unit} ({t.low / scale:.1f}–{t.high / scale:.1f})"


def accuracy(verdict: Verdict) -> str:
    """Error against the float64 oracle beside eager's own, and what the checks ran on."""
    if verdict.error is None:
        words = "Error against float64: not measured."
    else:
        eager = f"{verdict.eager_error:.1e}" if verdict.eager_error is not None else NOT
        words = f"Error against float64: {verdict.error:.1e} (eager: {eager})"
        words += f" in the check “{check}”" if (check := error_check_words(verdict)) else ""
        words += f", precision {verdict.precision}." if verdict.precision else "."
    passed = sum(check.passed for check in verdict.checks)
    skipped = f", {len(verdict.skipped)} skipped" if verdict.skipped else ""
    words += f" {passed} of {len(verdict.checks)} checks passed{skipped}." if verdict.checks else ""
    if verdict.mode == "interpreter":
        words += " Checked under Triton's interpreter."
    if verdict.limits and verdict.status in ("ok", "slower"):
        # Why not stands in the report: in some editors a hover that is too long loses its end.
        words += f" Not checked here: {'; '.join(map(claims.short, verdict.limits))}."
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
