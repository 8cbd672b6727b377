"""torch.compile's times for the chosen kernel: measured once, in a process without a candidate, and kept."""

from __future__ import annotations

from typing import Any

from kernel_lsp import errors, schema
from kernel_lsp.jobs.run import LEAST_SECONDS, Run

#: share by which eager's times of then and now may differ for a kept baseline to be used
AGREES = 0.05


async def add(run: Run) -> None:
    """Put the times of torch.compile, in the modes that the settings name, into the chosen candidate's measurement."""
    report = run.report
    if report.chosen is None:
        return
    measurement = report.candidates[report.chosen].measurement
    if measurement is None or not measurement.shapes or measurement.shapes[0].eager is None:
        return
    shape, modes = measurement.shapes[0], list(run.settings.baselines)
    measurement.compiled_missing = "" if modes else "not asked for"
    if not modes:
        return
    if run.remaining() < 2 * LEAST_SECONDS:
        measurement.compiled_missing = "torch.compile: the time was over"
        return
    run.progress("measuring", "Timing torch.compile", 95)
    try:
        async with run.timing():
            answer = await run.baseline(modes)
    except errors.UserError as error:
        measurement.compiled_missing = f"torch.compile: {error}"
        return
    for mode, found in answer["modes"].items():
        _fill(shape, mode, found)
    measurement.compiled_missing = "; ".join(answer["missing"].values())
    _judge_speed(report.candidates[report.chosen].verdict, shape)
    run.tell_verdict()


def _judge_speed(verdict: schema.Verdict, shape: schema.ShapeMeasurement) -> None:
    """Slower means beyond the spread: its 20th percentile above the other's 80th."""
    kernel, compiled = shape.kernel, shape.compiled
    if kernel and compiled and verdict.status == "ok" and kernel.low > compiled.high:
        verdict.status = "slower"
        verdict.reason = f"correct, but {kernel.median:.1f} µs against {compiled.median:.1f} µs of torch.compile"


def _fill(shape: schema.ShapeMeasurement, mode: str, found: dict[str, Any]) -> None:
    compiled = schema.from_json(schema.Timing, found["compiled"])
    then = schema.from_json(schema.Timing, found["eager"])
    assert shape.eager is not None
    if mode == "default":
        shape.compiled = compiled
    else:
        shape.compiled_modes[mode] = compiled
    if not agrees(then, shape.eager):
        shape.kept[mode] = f"measured in another process, where eager took {then.median:.1f} µs"


def agrees(one: schema.Timing, other: schema.Timing) -> bool:
    """Whether two times of eager are equal enough for what was measured beside the one to stand beside the other."""
    return abs(one.median - other.median) <= AGREES * other.median
