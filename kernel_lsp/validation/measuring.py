"""From a correct candidate to a Measurement: eager's times and the kernel's, and whether they can be."""

from __future__ import annotations

import datetime
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import class_schema, schema, speedup
from kernel_lsp.validation import (
    agreement,
    candidate_state,
    failures,
    host_pace,
    memory,
    profiled_kernels,
    roofline,
    state,
    timing,
)
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.referee import Referee

#: why there are no times of a candidate that cheats so
OTHERWISE = "what was timed computes something else"
#: how the reason begins of a candidate that does so
MEANWHILE = "while it is timed it computes something else"
#: by how much a call may take longer by this process's clock than the trial says: relative, microseconds, and
#: microseconds for each launch or torch call, whose preparation on the host CUDA events do not see
_CLOCK_FACTOR, _CLOCK_SLACK, _CLOCK_CALL = 1.3, 150.0, 30.0
#: microseconds that the calls for it take together, and the fewest and most calls
_CLOCK_SPAN, _CLOCK_CALLS = 60_000.0, (6, 400)
#: calls that go before, for which the trial allocates what the others find there
_CLOCK_FIRST = 3
#: Seconds to wait before each further attempt, before it is disbelieved. A machine whose processors are taken, or a container that has used
#: up its share of them, stops processes for tenths of a second.
_CLOCK_PAUSES = (0.0, 0.0, 0.1, 0.3, 0.7, 1.5)
#: the same before each attempt at eager's calls, which tell whether other work is in the way
_HELD_UP_PAUSES = (0.0, 0.1, 0.3, 0.5, 0.7)
#: attempts of those that show it
_HELD_UP_LEAST = 2
#: by how much eager may take longer beside the candidate than without it: relative, microseconds
_EAGER_FACTOR, _EAGER_SLACK = 1.2, 50.0
#: seconds to wait before the times are taken again where it takes longer than that
_AGAIN_PAUSES = (0.2, 1.0)
#: seconds for eager in this process
_EAGER_SECONDS = 0.2


@dataclass
class Given:
    """The inputs of one set of shapes, and what the module answers there.

    ``make()``: (args, kwargs) on the device; ``outputs``: the module's answer, without memory; ``calls``: launches and torch
    calls of the candidate there, each of which takes time on the host.
    """

    make: Callable[[], Any]
    outputs: Any
    calls: int


def of_the_example(referee: Referee) -> Given:
    """The example's shapes; each call of ``make`` makes new values."""
    inputs = referee.inputs
    return Given(lambda: inputs.example(dict(inputs.example_sizes)), referee.outputs, referee.progress.calls)


def measure(
    referee: Referee,
    verdict: schema.Verdict,
    specimen: dict[str, Any],
    rates: dict[str, float] | None,
    emit: Callable[[str, Any], None],
) -> tuple[schema.Measurement, dict[str, float] | None]:
    """Time the candidate that ``referee`` found correct, and eager, at the example's sizes and the recorded shapes.

    ``verdict`` becomes "slower" if it is, "wrong" or "cheating" where that shows now. No other process times on the device
    meanwhile.
    """
    from kernel_lsp.validation import recorded

    measurement = schema.Measurement()
    status = problem = ""
    try:
        with referee.alone():
            torch.cuda.set_device(referee.inputs.device)
            emit("progress", {"stage": "time", "message": "measuring the device", "fraction": 0.7})
            rates = rates or roofline.rates()
            referee.beyond = rates.get("beyond")
            emit("progress", {"stage": "time", "message": "timing eager and the kernel", "fraction": 0.75})
            measurement, shape = begin(referee, specimen, rates)
            recorded.begin(referee, measurement)
            candidate_state.reload(referee)
            found, blame = times(referee)
            if blame is not None:
                measurement.missing = OTHERWISE
            else:
                blame = fill(measurement, shape, found, referee)
            if blame is not None:
                status, problem = blame.status, blame.reason
            if not problem and shape.kernel is not None and referee.recorded is not None:
                emit("measurement", schema.to_json(measurement))
                emit("progress", {"stage": "time", "message": "timing the recorded shapes", "fraction": 0.85})
                status, problem = recorded.measure(referee, measurement)
                verdict.checks += [schema.Check("recorded shapes", False, problem)] if problem else []
    except failures.Failure as failure:
        measurement.missing = f"timing failed: {failure.reason}"
        return measurement, rates
    if problem:
        verdict.status, verdict.reason = status, problem  # type: ignore[assignment]
        return measurement, rates
    speedup.note_if_slower_than_eager(verdict, measurement)
    emit("measurement", schema.to_json(measurement))
    return measurement, rates


def times(referee: Referee, given: Given | None = None) -> tuple[dict[str, Any], failures.Failure | None]:
    """(what the trial says of its times, why they do not count): of eager and the candidate that is loaded, on values new to it.

    ``given``: the inputs, where they are not the example's.
    """
    given = given or of_the_example(referee)
    tree = fresh(referee, given=given)
    reference = right_answer(referee, tree)
    candidate_state.rewind(referee)
    with referee.asking({"do": "time", "beyond": referee.beyond}, (*tree, None), given.outputs) as answer:
        message = answer.message
        problem = difference(referee, tree, reference, answer.tree)
    return message, _blamed(referee, tree, reference, given, f"{MEANWHILE}: {problem}") if problem else None


def _blamed(referee: Referee, tree: Any, reference: Reference | None, given: Given, cheating: str) -> failures.Failure:
    """What a candidate is that gave something else than the module does when it was timed.

    Where it gives something else for these values, too, when it is constructed anew and called once, it is wrong. Else it is ``cheating``.
    """
    try:
        candidate_state.reload(referee)
        candidate_state.rewind(referee)
        names = referee.inputs.names
        request = {"do": "call", "names": list(names), "seed": referee.oracle.seed}
        with referee.asking(request, (*tree, None), given.outputs, tuple(names)) as answer:
            problem = difference(referee, tree, reference, answer.tree)
    except failures.Failure as failure:
        return failure
    if problem:
        return failures.Failure("wrong", f"on the values that it is timed on: {problem}")
    return failures.Failure("cheating", cheating)


def fresh(referee: Referee, scale: float = 1.0, given: Given | None = None) -> Any:
    """Inputs with values that the trial has not seen, so that nothing it kept can be of use.

    Those of ``given``, or the example's, times ``scale``, with the other sign where the module takes that.
    """
    inputs = referee.inputs
    tree = (given or of_the_example(referee)).make()
    sign = 1 if inputs.unit_interval else -1
    if sign * scale == 1:
        return tree

    def changed(value: Any) -> Any:
        floats = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        return value.mul(sign * scale) if floats and value.dtype.itemsize > 1 else value

    return pytree.tree_map(changed, tree)


def right_answer(referee: Referee, tree: Any) -> Reference | None:
    """What is right for a timed call; None where what was timed has drawn numbers of its own.

    It takes another copy of the inputs for a moment: ask for it before memory is lent to a trial.
    """
    return referee.oracle.answer(tree, seconds=0.1) if referee.oracle.seed is None else None


def difference(referee: Referee, tree: Any, reference: Reference | None, out: Any) -> str:
    """Why ``out`` is not right by ``reference``; "" if it is, or where there is none."""
    if reference is None:
        return ""
    kept = list(referee.progress.limits)
    referee.progress.check = "timing"
    comparison = agreement.compared(referee, out, reference, referee.eager_error, tree)
    referee.progress.limits = kept
    return comparison.reason


def confirm(
    referee: Referee, measurement: schema.Measurement, shape: schema.ShapeMeasurement, given: Given
) -> failures.Failure | None:
    """Whether what the trial says of its times can be: by this process's own clock, on values that are new to it.

    What cannot be is withdrawn, with ``measurement.missing``. Returns why the candidate is wrong or cheats, if it does: after all
    those calls, or replayed from a graph, it computes something else, or its calls take longer than it says. Where eager's
    calls take longer than CUDA events say, too, or launches take longer than they should, other work is in the way: then the
    candidate has no times, and is not blamed.
    """
    if shape.kernel is None:
        return None
    tree = fresh(referee, 0.75, given)
    try:
        reference = right_answer(referee, tree)
        took, problem = _by_our_clock(referee, tree, reference, given, shape.kernel.median)
        if not problem and shape.kernel_graph is not None:
            with referee.asking({"do": "replay"}, (*tree, None), given.outputs) as answer:
                problem = difference(referee, tree, reference, answer.tree)
        if not problem and (strange := profiled_kernels.look(referee, tree, shape)):
            _withdraw(measurement, shape, "what was timed is not all that it does")
            return failures.Failure("cheating", strange)
        most = shape.kernel.median * _CLOCK_FACTOR + _CLOCK_SLACK + _CLOCK_CALL * given.calls
        for pause in _CLOCK_PAUSES:
            if took > most and not problem:  # once more, since the machine may have been busy with something else
                time.sleep(pause)
                again, problem = _by_our_clock(referee, tree, reference, given, shape.kernel.median)
                took = min(took, again)
    except failures.Failure as failure:
        _withdraw(measurement, shape, f"timing failed: {failure.reason}")
        return None
    if problem:
        _withdraw(measurement, shape, OTHERWISE)
        said = "after the calls that were timed it computes something else"
        return _blamed(referee, tree, reference, given, f"{said}: {problem}")
    if took > most:
        said = f"{took:.0f} µs by the clock outside its process and {shape.kernel.median:.0f} µs by CUDA events in it"
        _withdraw(measurement, shape, f"{schema.MEASURING_ERROR}: a call takes {said}")
        if not _eager_is_held_up(referee, given):
            return failures.Failure("cheating", f"its times are not those of its work: a call takes {said}")
    return None


def _slowed(referee: Referee, shape: schema.ShapeMeasurement, given: Given) -> str:
    """What eager takes beside the candidate and without it, where it takes longer beside it; else ""."""
    alone = _eager_alone(referee, given)
    if shape.eager is None or alone is None or shape.eager.median <= _EAGER_FACTOR * alone + _EAGER_SLACK:
        return ""
    return f"eager takes {shape.eager.median:.0f} µs beside the candidate and {alone:.0f} µs without it"


def _withdraw(measurement: schema.Measurement, shape: schema.ShapeMeasurement, why: str) -> None:
    """Leave the kernel without times, and say why."""
    measurement.missing = why
    shape.kernel = shape.kernel_graph = None


def _by_our_clock(
    referee: Referee, tree: Any, reference: Reference | None, given: Given, median: float
) -> tuple[float, str]:
    """(microseconds a call, why what it computes in the end is not right)."""
    calls = _calls(median)
    seconds = {}
    problem = ""
    for count in (_CLOCK_FIRST, _CLOCK_FIRST + calls):
        began = time.perf_counter()
        with referee.asking({"do": "run", "calls": count}, (*tree, None), given.outputs) as answer:
            seconds[count] = time.perf_counter() - began
            if count > _CLOCK_FIRST:
                problem = difference(referee, tree, reference, answer.tree)
    return max(0.0, seconds[_CLOCK_FIRST + calls] - seconds[_CLOCK_FIRST]) / calls * 1e6, problem


def _eager_is_held_up(referee: Referee, given: Given) -> bool:
    """Whether eager's calls in this process take longer by its clock than CUDA events say, by what makes a candidate suspicious, or the host is late.

    Beside other programs on the GPU the median by events is that of calls that were not interrupted, and the clock sees all. Where others have the
    processors, a candidate of many short kernels waits for the host, though eager's longer ones may not.
    _HELD_UP_LEAST of the attempts have to show it, since this process may have been stopped in one. More are not asked for: a
    candidate without times gains nothing, and an honest one is not to be blamed for other programs.
    """
    held_up = 0
    for pause in _HELD_UP_PAUSES:
        time.sleep(pause)
        late = host_pace.launch_microseconds(referee.inputs.device) > host_pace.LATE
        median = _eager_alone(referee, given)
        took = _eager_by_clock(referee, given, median) if median is not None else None
        if median is None or took is None:
            return late
        held_up += late or took > median * _CLOCK_FACTOR + _CLOCK_SLACK
        if held_up >= _HELD_UP_LEAST:
            return True
    return False


def _eager_by_clock(referee: Referee, given: Given, median: float) -> float | None:
    """Microseconds a call of eager's, many after one another; None where memory is short."""
    calls = _calls(median)
    try:
        with torch.no_grad(), state.unchanged(referee.module):
            args, kwargs = given.make()
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(calls):
                referee.module(*args, **kwargs)
            torch.cuda.synchronize()
            return (time.perf_counter() - began) / calls * 1e6
    except torch.OutOfMemoryError:
        return None
    finally:
        memory.release()


def _calls(median: float) -> int:
    """How many calls of ``median`` microseconds are needed for a time by the clock."""
    few, most = _CLOCK_CALLS
    return min(most, max(few, int(_CLOCK_SPAN / max(median, 1.0))))


def _eager_alone(referee: Referee, given: Given) -> float | None:
    """Eager's median in this process, where no candidate is, in microseconds; None where memory is short."""
    try:
        with torch.no_grad(), state.unchanged(referee.module):
            inputs = [given.make()]  # perhaps the example itself: it is not to be changed
            found = timing.interleaved(
                {"eager": lambda a, k: referee.module(*a, **k)},
                inputs,
                _EAGER_SECONDS,
                renew=False,
                beyond=referee.beyond,
            )
    except torch.OutOfMemoryError:
        return None
    finally:
        memory.release()
    return found["eager"].median


def begin(
    referee: Referee, specimen: dict[str, Any], rates: dict[str, float]
) -> tuple[schema.Measurement, schema.ShapeMeasurement]:
    """A measurement that holds what is known before anything is timed."""
    rounds = agreement.may_round(referee) or referee.held_to != "strict"
    rate = roofline.matmul_rate(rates, dtype(referee), rounds)
    device = _device(referee.inputs.device, rates["copy_bandwidth"], rate)
    measurement = schema.Measurement(device=device)
    measurement.measured_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    shape = schema.ShapeMeasurement(
        inputs=[schema.from_json(class_schema.TensorSpec, s) for s in specimen["inputs"]],
        bytes=specimen.get("bytes"),
        flops=specimen.get("flops"),
    )
    shape.roofline = roofline.microseconds(shape.bytes, shape.flops, device.copy_bandwidth, device.matmul_rate)
    measurement.shapes = [shape]
    return measurement, shape


def fill(
    measurement: schema.Measurement,
    shape: schema.ShapeMeasurement,
    answer: dict[str, Any],
    referee: Referee,
    given: Given | None = None,
) -> failures.Failure | None:
    """Take over the times of an answer, and withdraw those that cannot be. Returns why the candidate is wrong or cheats, if it does.

    Where eager took longer beside the candidate than it does without, the times are taken again: the machine may have been busy.
    ``given``: the inputs of ``shape``, where they are not the example's.
    """
    given = given or of_the_example(referee)
    for pause in (*_AGAIN_PAUSES, None):
        _fill(shape, answer)
        if problem := confirm(referee, measurement, shape, given):
            return problem
        slowed = _slowed(referee, shape, given) if shape.kernel is not None else ""
        if slowed and pause is None:
            _withdraw(measurement, shape, f"{schema.MEASURING_ERROR}: {slowed}")
        if not slowed or pause is None:
            break
        time.sleep(pause)
        answer, failure = times(referee, given)
        if failure is not None:
            _withdraw(measurement, shape, OTHERWISE)
            return failure
    if shape.kernel is not None:
        _doubt(measurement, shape, referee.inputs.ops)
    return None


def _fill(shape: schema.ShapeMeasurement, answer: dict[str, Any]) -> None:
    for name in ("eager", "kernel", "kernel_graph", "eager_graph"):
        if answer.get(name):
            setattr(shape, name, schema.from_json(schema.Timing, answer[name]))
    if shape.kernel is None:
        return
    best = min(t.median for t in (shape.kernel, shape.kernel_graph) if t is not None)
    if shape.roofline and best > 0:
        shape.roofline_share = shape.roofline / best


def _doubt(measurement: schema.Measurement, shape: schema.ShapeMeasurement, ops: dict[str, int]) -> None:
    """Times below what the bytes need are withdrawn. Operations a kernel may have found a way to do without."""
    kernel, device = shape.kernel, measurement.device
    assert kernel is not None and device is not None
    fastest = min(t.median for t in (kernel, shape.kernel_graph) if t is not None)
    least = roofline.microseconds(shape.bytes, None, device.copy_bandwidth, None)
    if least and fastest < roofline.FLOOR * least:
        eager = min((t.median for t in (shape.eager, shape.eager_graph) if t), default=0.0)
        if any(op in ops for op in roofline.PARTIAL_READS) or eager < roofline.FLOOR * least:
            shape.roofline = shape.roofline_share = shape.bytes = None  # the bytes were overestimated
        else:
            needs = f"what the device needs for its bytes ({least:.1f} µs)"
            _withdraw(measurement, shape, f"{schema.MEASURING_ERROR}: {fastest:.1f} µs is below {needs}")
            return
    elif shape.roofline and fastest < roofline.FLOOR * shape.roofline:
        shape.roofline = shape.roofline_share = shape.flops = None  # it needs fewer operations than the module
    if shape.bytes and device.copy_bandwidth and fastest > 0:
        shape.bandwidth_share = shape.bytes / (fastest * 1e-6) / device.copy_bandwidth


def dtype(referee: Referee) -> torch.dtype:
    """The dtype that the module's products are in: the first input's, or float8 where that or the module has some."""
    floats = [leaf.example.dtype for leaf in referee.inputs.leaves if leaf.example.dtype.is_floating_point]
    held = [t.dtype for t in (*referee.module.parameters(), *referee.module.buffers()) if t.dtype.is_floating_point]
    eighths = [kind for kind in (*floats, *held) if kind.itemsize == 1]
    return (eighths or floats or [torch.float32])[0]


def _device(where: torch.device, copy_bandwidth: float, matmul_rate: float) -> schema.Device:
    import triton

    properties = torch.cuda.get_device_properties(where)
    return schema.Device(
        name=properties.name,
        kind="cuda",
        capability=f"{properties.major}.{properties.minor}",
        copy_bandwidth=copy_bandwidth,
        matmul_rate=matmul_rate,
        python=platform.python_version(),
        torch=torch.__version__,
        triton=triton.__version__,
        memory=properties.total_memory,
    )
