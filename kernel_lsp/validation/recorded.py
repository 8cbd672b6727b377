"""Timing at the shapes that a user's program was seen to use (``kernel-lsp record``), after the example's.

At each the candidate has to give what the module gives, before and after it is timed; then it is timed beside eager in the
same conversation as at the example's. What cannot be timed is left out, with the reason.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from kernel_lsp import class_schema, schema
from kernel_lsp.validation import (
    answer_checks,
    channel,
    device_asserts,
    failures,
    measuring,
    memory,
    precompiling,
    roofline,
    state,
)
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.referee import Referee
from kernel_lsp.validation.trees import copied, tensors_of, without_memory

#: shapes that are timed at most, the example's own among them, and the share of the time at which there are enough
MOST, MOSTLY = 4, 0.95
#: seconds after which no further shape is begun, and that have to be left of the candidate's time for the other checks
SECONDS, RESERVE = 6.0, 10.0
#: how the reason of a failure at a recorded shape begins
AT_SHAPE = "at the recorded shape "
#: how often the inputs of a shape are held at once: here, lent, and as the trial renews them
_COPIES = 4


@dataclass
class RecordedShape:
    """Calls of one kind. ``shaped``: (args, kwargs) without memory. ``make()``: with values, others each time."""

    text: str  # for people: "float32[8, 512]"
    calls: int
    seconds: float  # that they took in the program
    specs: list[class_schema.TensorSpec]
    shaped: Any
    make: Callable[[], Any]

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call its tensors."""
        return tuple(f"input {spec.name}" for spec in self.specs)


@dataclass
class RecordedShapes:
    """What a program called the module with. ``example_calls``, ``example_seconds``: at the example's own shapes."""

    source: str  # "train.py"
    seconds: float  # in all recorded calls of the class
    shapes: list[RecordedShape] = field(default_factory=list)  # the most time first
    left_out: list[str] = field(default_factory=list)
    example_calls: int = 0
    example_seconds: float = 0.0


class LeftOut(Exception):
    """A shape cannot be timed; the argument says why."""


def begin(referee: Referee, measurement: schema.Measurement) -> None:
    """Note in ``measurement`` what the recorded shapes stand for; the example's own calls go to its first shape."""
    found = referee.recorded
    if found is None:
        return
    measurement.recorded = schema.RecordedMix(found.source, left_out=list(found.left_out))
    measurement.shapes[0].calls = found.example_calls or None


def cases(referee: Referee) -> list[Any]:
    """Calls at the recorded shapes that there is memory for, as the trial is told of them: shapes without values."""
    found = referee.recorded.shapes if referee.recorded is not None else []
    there = _free(referee)
    return [channel.describe(precompiling.shapes_of(s.shaped), []) for s in found if not _needs_more(s, there)]


def in_time(referee: Referee, left_out: list[str]) -> Iterator[RecordedShape]:
    """The recorded shapes, while there is time, that there is memory for; ``left_out``: why others are not."""
    began = time.monotonic()
    for shape in referee.recorded.shapes if referee.recorded is not None else []:
        there = _free(referee)
        if time.monotonic() - began > SECONDS or referee.trial.deadline - time.monotonic() < RESERVE:
            left_out.append(f"{shape.text}: the time was over")
        elif needs := _needs_more(shape, there):
            left_out.append(f"{shape.text}: not enough memory for inputs of {needs}, {memory.text(there)} were left")
        else:
            yield shape
            memory.release()


@contextlib.contextmanager
def leaving_out(shape: RecordedShape, left_out: list[str]) -> Iterator[None]:
    """Go on after the context where a shape cannot be timed, and note why."""
    try:
        yield
    except LeftOut as why:
        left_out.append(f"{shape.text}: {why}")
    except torch.OutOfMemoryError:
        left_out.append(f"{shape.text}: not enough memory")


def answered(referee: Referee, shape: RecordedShape) -> tuple[Any, Reference]:
    """Inputs of a shape, and what the module answers to them.

    Raises:
        LeftOut: there are none, or it fails.
    """
    try:
        tree = shape.make()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise LeftOut(f"its inputs cannot be made: {failures.sentence(error)}") from None
    try:
        with device_asserts.raised(referee.inputs.device):
            return tree, referee.oracle.answer(tree, seconds=0.1)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        traceback.print_exc()
        raise LeftOut(f"the module fails there: {failures.sentence(error)}") from None


def check(referee: Referee, shape: RecordedShape, tree: Any, reference: Reference) -> int:
    """Call the candidate at a shape; the launches and torch calls in it.

    Raises:
        LeftOut: none of its kernels runs.
        Failure: it fails; "wrong" where it does not give what the module gives.
    """
    request = {"do": "call", "names": list(shape.names), "seed": referee.oracle.seed}
    try:
        with referee.asking(request, (*tree, None), reference.eager, shape.names) as answer:
            wrong = answer.damaged[0] if answer.damaged else measuring.difference(referee, tree, reference, answer.tree)
            launches, calls = answer.message["launches"], answer_checks.calls_in(answer.message)
        if wrong:
            raise failures.Failure("wrong", wrong)
    except failures.Failure as failure:
        reason = f"{AT_SHAPE}{shape.text}: {failure.reason}"
        raise failures.Failure(failure.status, reason, failure.line) from None
    if not launches:
        raise LeftOut("the kernel leaves it to eager")
    return calls


def measure(referee: Referee, measurement: schema.Measurement) -> tuple[str, str]:
    """Time the candidate that is loaded at the recorded shapes, into ``measurement``.

    ("", ""), or the status and the reason of a candidate that is wrong at one, or cheats there.
    """
    mix, recorded = measurement.recorded, referee.recorded
    if mix is None or recorded is None:
        return "", ""
    seconds = recorded.example_seconds
    try:
        if recorded.shapes:
            referee.ask({"do": "precompile", "cases": cases(referee)})
        for shape in in_time(referee, mix.left_out):
            with leaving_out(shape, mix.left_out):
                status, problem = _measure_at(referee, measurement, shape)
                if problem:
                    return status, problem
                seconds += shape.seconds
    except failures.Failure as failure:
        if failure.status in ("out-of-memory", "timeout"):  # there were RESERVE seconds at the least
            return failure.status, failure.reason
        mix.left_out.append(f"timing failed: {failure.reason}")
    mix.share = min(1.0, seconds / recorded.seconds) if recorded.seconds else None
    return "", ""


def _measure_at(referee: Referee, measurement: schema.Measurement, recorded: RecordedShape) -> tuple[str, str]:
    """Time the candidate beside eager at one shape, into ``measurement``; as ``measure``.

    Raises:
        LeftOut: the shape cannot be timed.
        Failure: the candidate fails there.
    """
    tree, reference = answered(referee, recorded)
    try:
        calls = check(referee, recorded, tree, reference)
    except failures.Failure as failure:
        if failure.status == "timeout":
            raise
        return failure.status, failure.reason
    shape = _begun(referee, measurement, recorded, tree, reference)
    given = measuring.Given(recorded.make, without_memory(reference.eager), calls)
    del tree, reference  # what comes next makes its own
    found, blame = measuring.times(referee, given)
    if blame is not None:
        return blame.status, f"{AT_SHAPE}{recorded.text}: {blame.reason}"
    single = schema.Measurement(device=measurement.device)  # what is withdrawn here says nothing of other shapes
    if blame := measuring.fill(single, shape, found, referee, given):
        return blame.status, f"{AT_SHAPE}{recorded.text}: {blame.reason}"
    if shape.kernel is None:
        raise LeftOut(single.missing or "it was not timed")
    measurement.shapes.append(shape)
    return "", ""


def _begun(
    referee: Referee, measurement: schema.Measurement, recorded: RecordedShape, tree: Any, reference: Reference
) -> schema.ShapeMeasurement:
    """What is known of a shape before it is timed: the least traffic, the FLOPs and the roofline."""
    shape, example = (
        schema.ShapeMeasurement(inputs=recorded.specs, calls=recorded.calls, text=recorded.text),
        measurement.shapes[0],
    )
    if example.bytes is not None:
        moved = [*tensors_of(tree), *tensors_of(reference.eager)]
        shape.bytes = memory.of_state(referee.module) + sum(map(memory.size, moved))
    shape.flops = _flops(referee, tree) if example.flops is not None else None
    device = measurement.device
    if device is not None:
        shape.roofline = roofline.microseconds(shape.bytes, shape.flops, device.copy_bandwidth, device.matmul_rate)
    return shape


def _flops(referee: Referee, tree: Any) -> int | None:
    """FLOPs of a call's matrix products, counted as for the example; None where that does not do."""
    try:
        args, kwargs = copied(tree)
        with torch.no_grad(), state.unchanged(referee.module), FlopCounterMode(display=False) as counter:
            referee.module(*args, **kwargs)
        return int(counter.get_total_flops())
    except Exception:
        return None


def _needs_more(shape: RecordedShape, there: int) -> str:
    """The size of inputs of which ``there`` bytes do not hold as many copies as there have to be; else ""."""
    size = sum(map(memory.size, tensors_of(shape.shaped)))
    return memory.text(size) if _COPIES * size > there else ""


def _free(referee: Referee) -> int:
    return memory.free([torch.empty(0, device=referee.inputs.device)])
