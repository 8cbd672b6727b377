"""How long a call takes: eager, torch.compile and the kernel at each set of shapes, with their spread."""

from __future__ import annotations

from kernel_lsp.figures import factor
from kernel_lsp.schema import Measurement, ShapeMeasurement, Timing

from . import numbers
from .bars import Bar, chart
from .facts import Facts
from .html import Markup, details, div, el, section, span, table

#: Rows of a chart: the field of a ShapeMeasurement, its name, its colour, and whether it is a further figure.
ROWS = (
    ("eager", "eager", "eager", False),
    ("eager_graph", "… replayed", "eager", True),
    ("compiled", "torch.compile", "compiled", False),
    ("kernel", "kernel", "kernel", False),
    ("kernel_graph", "… replayed", "kernel", True),
)


def speed(facts: Facts) -> Markup:
    """The bars of every set of shapes. There have to be some: ``facts.timed``."""
    measurement = facts.measurement
    assert measurement is not None
    parts = [_shape(shape, measurement) for shape in measurement.shapes]
    notes = [f"Not measured: {numbers.stop(measurement.missing)}"] if measurement.missing else []
    notes.append("Bars are medians; the whiskers reach from the 20th to the 80th percentile. Shorter is better.")
    if any(timed is not None for s in measurement.shapes for timed in (s.kernel_graph, s.eager_graph)):
        notes.append("Replayed: the same call from a CUDA graph, without the time that Python takes to launch it.")
    return section(
        "Time of one call",
        parts,
        el("p", " ".join(notes), class_="hint"),
        details("The figures as a table", _table(measurement)),
    )


def _shape(shape: ShapeMeasurement, measurement: Measurement) -> Markup:
    timings = {name: numbers.timed(getattr(shape, name)) for name, *_ in ROWS}
    there = [timing for timing in timings.values() if timing is not None]
    unit = numbers.Microseconds([timing.median for timing in there])
    reach = 1.02 * max((timing.high for timing in there), default=1.0)
    bars = []
    for name, label, kind, minor in ROWS:
        timing = timings[name]
        if timing is None:
            if not minor:
                bars.append(Bar(label, kind, None, span("missing", numbers.NOT), says=f"{label}: {numbers.NOT}"))
            continue
        says = f"{label}: {unit(timing.median)}, from {unit(timing.low)} to {unit(timing.high)}"
        text = [el("b", unit(timing.median)) if not minor else unit(timing.median)]
        aside = _ratio(timing, timings["kernel"]) if name in ("eager", "compiled") else ""
        bars.append(Bar(label, kind, timing.median, text, timing.low, timing.high, aside=aside, minor=minor, says=says))
    marks = [(at, unit.tick(at)) for at in numbers.ticks(reach)] if there else []
    missing = [] if shape.compiled or not measurement.compiled_missing else [measurement.compiled_missing]
    return div(
        "shape",
        el("h3", ", ".join(map(numbers.tensor, shape.inputs)) or "Inputs not recorded"),
        chart(bars, reach, marks),
        [
            el("p", f"torch.compile not measured: {numbers.stop(why.removeprefix('torch.compile: '))}")
            for why in missing
        ],
    )


def _ratio(timing: Timing, kernel: Timing | None) -> str:
    return f"{factor(timing.median / kernel.median)} the kernel’s" if kernel is not None else ""


def _table(measurement: Measurement) -> Markup:
    several = len(measurement.shapes) > 1
    rows = []
    for shape in measurement.shapes:
        inputs = [", ".join(map(numbers.tensor, shape.inputs)) or "not recorded"] if several else []
        for name, label, kind, minor in ROWS:
            timing = getattr(shape, name)
            called = f"{kind}, replayed" if minor else label
            if timing is None:
                rows.append([*inputs, called, numbers.NOT, "", "", ""])
            else:
                cells = [f"{value:.2f}" for value in (timing.median, timing.low, timing.high)]
                rows.append([*inputs, called, *cells, str(timing.runs)])
    head = [*(["inputs"] if several else []), "", "median µs", "20th percentile", "80th percentile", "runs"]
    return table(head, rows, range(len(head) - 4, len(head)))
