"""What the figures are about: the example inputs, the device, the compiled kernels, and the time the job took."""

from __future__ import annotations

from kernel_lsp import number_text
from kernel_lsp.class_schema import Specimen, TensorSpec
from kernel_lsp.envelope_constants import UNBOUNDED, size_range
from kernel_lsp.schema import Device, Report, Verdict

from .bars import Bar, chart
from .facts import Facts
from .html import Child, Markup, div, el, filled, section, span, table

#: The marks that a job sets in ``Report.seconds`` when a stage is reached for the first time.
STAGES = {
    "ready": "Worker ready",
    "candidates": "First candidates",
    "verdict": "First verdict",
    "measurement": "First times",
    "report": "Finished",
}


def compiled(verdict: Verdict | None) -> Markup | None:
    """Registers, spills and shared memory of every compiled kernel; None where nothing was compiled for a GPU."""
    kernels = verdict.kernels if verdict is not None else []
    if not kernels:
        return None

    def cell(value: int | None) -> Child:
        return "–" if value is None else f"{value:,}"

    rows = [
        [
            el("code", k.name),
            k.target.replace("cuda:", "sm_"),
            cell(k.registers),
            cell(k.spills),
            cell(k.shared),
            cell(k.num_warps),
        ]
        for k in kernels
    ]
    head = ["kernel", "for", "registers a thread", "spilled bytes a thread", "shared bytes a block", "warps"]
    launches = verdict.launches if verdict is not None else None
    hint = f"{launches} launch{'es' if launches != 1 else ''} a call." if launches is not None else ""
    kept = filled(head, rows, number_text.EMPTY)
    figures = range(2 if 1 in kept else 1, len(kept))
    return section(
        "Compiled kernels", table([head[i] for i in kept], [[row[i] for i in kept] for row in rows], figures), hint=hint
    )


def specimen(report: Report | None) -> Markup | None:
    """The example that everything was measured on; None where it was not recorded."""
    spec = report.specimen if report is not None else None
    if spec is None:
        return None
    rows = [["input", *_tensor(t)] for t in spec.inputs]
    rows += [["output", *_tensor(t)] for t in spec.outputs]
    rows += [["parameter", *_tensor(t)] for t in spec.parameters]
    facts = _list(
        [
            ("Inputs from", el("code", spec.inputs_from) if spec.inputs_from else "not recorded"),
            ("Constructed with", el("code", spec.init_args) if spec.init_args else "no arguments"),
            ("Sizes that may vary", _dynamic(spec)),
            (
                "Bytes to move, at least",
                f"{spec.bytes:,} ({number_text.size(spec.bytes)})" if spec.bytes else "not known",
            ),
            ("FLOPs of matrix products", _flops(spec.flops)),
            ("Operators", _ops(spec)),
        ]
    )
    return section("Example", facts, table(["", "name", "dtype", "shape"], rows))


def _tensor(t: TensorSpec) -> list[Child]:
    symbols = [*t.dynamic, *[None] * len(t.shape)]
    sizes = [f"{s} = {n}" if s else str(n) for n, s in zip(t.shape, symbols, strict=False)]
    return [el("code", t.name or "–"), t.dtype, f"[{', '.join(sizes)}]"]


def _dynamic(spec: Specimen) -> Child:
    if not spec.dynamic:
        return "none"
    parts = []
    for symbol, limits in spec.dynamic.items():
        least, greatest = (*limits, UNBOUNDED)[:2] if limits else (0, UNBOUNDED)
        parts.append(f"{symbol}: {size_range(least, greatest)}")
    return "; ".join(parts)


def _flops(flops: int | None) -> str:
    if flops is None:
        return "not known"
    return f"{flops:,}" if flops else "none: there are no matrix products"


def _ops(spec: Specimen) -> Child:
    if not spec.ops:
        return "not known: the module was not traced"
    return [span("chip", name, f" ×{count}" if count > 1 else "") for name, count in spec.ops.items()]


def machine(facts: Facts) -> Markup | None:
    """The device and the versions; None where they were not recorded."""
    device = facts.measured_on
    if device is None:
        return None
    at = facts.measurement.measured_at if facts.measurement is not None else ""
    return section("Device", _list([*_device(device), *([("Measured", number_text.moment(at))] if at else [])]))


def _device(device: Device) -> list[tuple[str, Child]]:
    bandwidth, rate = number_text.known(device.copy_bandwidth), number_text.known(device.matmul_rate)
    rows: list[tuple[str, Child]] = [("Name", device.name)]
    rows += [("Copy bandwidth", number_text.si(bandwidth, "B/s"))] if bandwidth else []
    rows += [("Matrix products", number_text.si(rate, "FLOP/s"))] if rate else []
    names = (("Compute capability", "capability"), ("torch", "torch"), ("Triton", "triton"), ("Python", "python"))
    for title, field in (*names, ("Driver", "driver")):
        if getattr(device, field):
            rows.append((title, getattr(device, field)))
    return rows


def _list(rows: list[tuple[str, Child]]) -> Markup:
    return el("dl", [div("pair", el("dt", title), el("dd", value)) for title, value in rows])


def course(report: Report | None) -> Markup | None:
    """When what was done, from the command on."""
    seconds = report.seconds if report is not None else {}
    marks = sorted(((stage, at) for stage, at in seconds.items() if 0 <= at < 1e9), key=lambda item: item[1])
    if len(marks) < 2:
        return None
    last = max(marks[-1][1], 1e-3)
    bars, before = [], 0.0
    for stage, at in marks:
        words, figure = STAGES.get(stage, stage), f"{at:.1f} s"
        says = f"{words} after {figure}"
        bars.append(Bar(words, "plain", at, el("b", figure), start=before, aside=f"+{at - before:.1f} s", says=says))
        before = at
    ticks = [(at, f"{at:g} s") for at in number_text.ticks(1.02 * last)]
    return section("How long the job took", chart(bars, 1.02 * last, ticks), hint="Seconds since the command.")
