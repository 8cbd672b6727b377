"""From a correct candidate to a Measurement: eager and the kernel first, torch.compile after."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import figures, schema
from kernel_lsp.validation import checks, failures, roofline
from kernel_lsp.validation.referee import Referee

#: relative, and microseconds, by which the host's clock must not exceed the events' before they are disbelieved
_HOST_FACTOR, _HOST_SLACK = 3.0, 200.0


def measure(
    referee: Referee,
    verdict: schema.Verdict,
    specimen: dict[str, Any],
    how: str,
    rates: dict[str, float] | None,
    emit: Callable[[str, Any], None],
) -> tuple[schema.Measurement, dict[str, float]]:
    """Time the candidate that ``referee`` found correct, at the example's sizes; ``verdict`` becomes "slower" if it is.

    ``how`` is "eager" or "full". The measurement against eager is emitted before torch.compile is begun.
    """
    inputs = referee.inputs
    torch.cuda.set_device(inputs.device)
    emit("progress", {"stage": "time", "message": "measuring the device", "fraction": 0.7})
    rates = rates or roofline.rates(dtype(referee))
    emit("progress", {"stage": "time", "message": "timing eager and the kernel", "fraction": 0.75})
    measurement, shape = begin(referee, specimen, rates)
    tree = fresh(referee)
    try:
        referee.reload()
        with referee.asking({"do": "time"}, (*tree, None), referee.outputs) as answer:
            found = answer.message
            problem = same_results(referee, tree, answer.tree)
    except failures.Failure as failure:
        measurement.missing = f"timing failed: {failure.reason}"
        return measurement, rates
    if problem:
        verdict.status, verdict.reason = "cheating", f"while it is timed it computes something else: {problem}"
        measurement.missing = "what was timed computes something else"
        return measurement, rates
    fill(measurement, shape, found, inputs.ops)
    figures.note_if_slower(verdict, shape.kernel, "eager", shape.eager)
    measurement.compiled_missing = "torch.compile: still to come" if how == "full" else "not asked for"
    emit("measurement", schema.to_json(measurement))
    if how != "full" or measurement.missing:
        return measurement, rates
    emit("progress", {"stage": "time", "message": "compiling with torch.compile", "fraction": 0.85})
    try:
        found = referee.ask({"do": "time_compiled"})
    except failures.Failure as failure:
        measurement.compiled_missing = f"torch.compile: {failure.reason}"
        return measurement, rates
    measurement.compiled_missing = found.get("missing", "")
    if not measurement.compiled_missing:
        fill(measurement, shape, found, inputs.ops)
        figures.note_if_slower(verdict, shape.kernel, "eager", shape.eager)
        figures.note_if_slower(verdict, shape.kernel, "torch.compile", shape.compiled)
    return measurement, rates


def fresh(referee: Referee) -> Any:
    """The example with values that the trial has not seen, so that nothing it kept can be of use."""
    inputs = referee.inputs
    tree = inputs.example(dict(inputs.example_sizes))
    if any(op in inputs.ops for op in ("aten.binary_cross_entropy",)):
        return tree
    return pytree.tree_map(lambda t: -t if isinstance(t, torch.Tensor) and t.dtype.is_floating_point else t, tree)


def same_results(referee: Referee, tree: Any, out: Any) -> str:
    """Why what was computed while it was timed is not right; "" if it is."""
    if referee.oracle.seed is not None:  # what was timed has drawn numbers of its own
        return ""
    reference = referee.oracle.answer(tree, seconds=0.1)
    kept = list(referee.progress.limits)
    comparison = checks.compared(referee, out, reference, referee.example_error)
    referee.progress.limits = kept
    return comparison.reason


def begin(
    referee: Referee, specimen: dict[str, Any], rates: dict[str, float]
) -> tuple[schema.Measurement, schema.ShapeMeasurement]:
    """A measurement that holds what is known before anything is timed."""
    measurement = schema.Measurement(device=_device(referee.inputs.device, rates))
    measurement.measured_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    shape = schema.ShapeMeasurement(
        inputs=[schema.from_json(schema.TensorSpec, s) for s in specimen["inputs"]],
        bytes=specimen.get("bytes"),
        flops=specimen.get("flops"),
    )
    shape.roofline = roofline.microseconds(
        shape.bytes, shape.flops, *(rates[k] for k in ("copy_bandwidth", "matmul_rate"))
    )
    measurement.shapes = [shape]
    return measurement, shape


def fill(
    measurement: schema.Measurement, shape: schema.ShapeMeasurement, answer: dict[str, Any], ops: dict[str, int]
) -> None:
    """Take over the times of an answer, and withdraw those that cannot be."""
    _fill(shape, answer)
    _doubt(measurement, shape, answer["host"], ops)


def _fill(shape: schema.ShapeMeasurement, answer: dict[str, Any]) -> None:
    for name in ("eager", "compiled", "kernel", "kernel_graph", "eager_graph"):
        if answer.get(name):
            setattr(shape, name, schema.from_json(schema.Timing, answer[name]))
    if shape.kernel is None:
        return
    best = min(t.median for t in (shape.kernel, shape.kernel_graph) if t is not None)
    if shape.roofline:
        shape.roofline_share = shape.roofline / best


def _doubt(measurement: schema.Measurement, shape: schema.ShapeMeasurement, host: float, ops: dict[str, int]) -> None:
    """Times that cannot be are withdrawn: below the roofline's floor, or far below the host's clock."""
    kernel, device = shape.kernel, measurement.device
    assert kernel is not None and device is not None
    fastest = min(t.median for t in (kernel, shape.kernel_graph) if t is not None)
    if shape.roofline and fastest < roofline.FLOOR * shape.roofline:
        eager = min((t.median for t in (shape.eager, shape.eager_graph) if t), default=0.0)
        if any(op in ops for op in roofline.PARTIAL_READS) or eager < roofline.FLOOR * shape.roofline:
            shape.roofline = shape.roofline_share = shape.bytes = None  # the bytes were overestimated
        else:
            measurement.missing = (
                f"measuring error: {fastest:.1f} µs is below what the device needs for its bytes and FLOPs "
                f"({shape.roofline:.1f} µs)"
            )
            shape.kernel = shape.kernel_graph = None
            return
    if host > _HOST_FACTOR * kernel.median + _HOST_SLACK:
        measurement.missing = (
            f"measuring error: a call takes {host:.0f} µs by the host's clock and {kernel.median:.0f} µs by CUDA events"
        )
        shape.kernel = shape.kernel_graph = None
        return
    if shape.bytes and device.copy_bandwidth:
        shape.bandwidth_share = shape.bytes / (fastest * 1e-6) / device.copy_bandwidth


def dtype(referee: Referee) -> torch.dtype:
    """The dtype that the module's products are in."""
    floats = [leaf.example.dtype for leaf in referee.inputs.leaves if leaf.example.dtype.is_floating_point]
    return floats[0] if floats else torch.float32


def _device(where: torch.device, rates: dict[str, float]) -> schema.Device:
    import triton

    properties = torch.cuda.get_device_properties(where)
    return schema.Device(
        name=properties.name,
        kind="cuda",
        capability=f"{properties.major}.{properties.minor}",
        copy_bandwidth=rates["copy_bandwidth"],
        matmul_rate=rates["matmul_rate"],
        python=platform.python_version(),
        torch=torch.__version__,
        triton=triton.__version__,
    )
