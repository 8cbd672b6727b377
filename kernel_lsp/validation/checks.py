"""What a step of the plan looks at: values, repetition, decoys, state, configurations."""

from __future__ import annotations

import dataclasses
import functools
import random
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp import errors
from kernel_lsp.validation import (
    agreement,
    answer_checks,
    calls_outside,
    candidate_state,
    changed_numbers,
    compare,
    conditions,
    conversion,
    copies,
    decoy,
    draw_statistics,
    envelope,
    failures,
    kept_state,
    memory,
    misfits,
    modes,
    out_of_range,
    plan,
    randomness,
    reaching,
)
from kernel_lsp.validation.oracle import SEED, Reference
from kernel_lsp.validation.trees import copied, tensors_of, without_memory

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: seconds that float64 on slices may take at the example's own size, and elsewhere
_FULL_SECONDS, _OTHER_SECONDS = 0.4, 0.15
#: the share of the time that is left which comparing random results by their statistics may take; else fewer are compared
_DRAWING = 1 / 3
#: elements of the results of a step that has little time
_MOST_ELEMENTS = 1 << 20
#: seconds for the configurations of autotuned kernels
_CONFIGURATIONS_SECONDS, _MOST_CONFIGURATIONS = 1.0, 500
#: calls, and seconds under the interpreter and on a GPU, of the check for counted calls
_CALLS, _CALLS_SECONDS = 150, 0.15


def check(referee: Referee, step: plan.Step) -> None:
    """Run one step. One that takes too long under the interpreter is left out where it may be, and that is said.

    Raises:
        Failure: the candidate is found wanting.
        ForwardFailed: the module raises.
    """
    try:
        _check(referee, step)
    except failures.Failure as failure:
        if step.most_seconds is None or failure.status != "not-interpretable":
            raise
        referee.progress.limits.append(f"{step.name} ({failure.reason})")


def _check(referee: Referee, step: plan.Step) -> None:
    if step.kind == "double":
        envelope.another_dtype(referee, step)
    elif step.kind == "gradients":
        envelope.gradients(referee, step)
    elif step.kind == "small parameters":
        _small_parameters(referee, step)
    elif step.kind == "configurations":
        _configurations(referee, step)
    elif step.kind == "copies":
        copies.check(referee, step)
    elif step.kind == "converted":
        conversion.check(referee, step)
    elif step.kind == "numbers":
        changed_numbers.check(referee, step)
    elif step.kind == "calls":
        _many_calls(referee, step)
    elif step.kind == "unmarked":
        calls_outside.ask(referee, step)
    elif step.kind == "sides":
        reaching.check(referee, step, functools.partial(_values, referee))
    elif step.kind == "bounds":
        out_of_range.check(referee, step)
    elif not step.eval_part or modes.may_differ(referee.module):
        with referee.oracle.partly_in_eval_mode(step.eval_part), referee.oracle.under_autocast(step.autocast):
            _values_beyond(referee, step)
        if step.required and referee.oracle.made:
            _first_call(referee, step)


def _first_call(referee: Referee, step: plan.Step) -> None:
    """A call that finds attributes as the constructor leaves them: those before began with what such a call had left."""
    tree = step.make(referee.inputs)
    names = tuple(referee.inputs.names)
    step = dataclasses.replace(step, name=f"{step.name}, the first call", inside=False, required=False)
    candidate_state.reload(referee)
    with referee.oracle.at_first():
        reference = referee.oracle.answer(tree, step.train, _OTHER_SECONDS)
        # What it made of attributes may have come about in another way, and be looked at by no other call.
        reference.attributes = {}
        request = {"do": "call", "names": list(names), "seed": referee.oracle.seed}
        with referee.asking(request, (*tree, None), reference.eager, names) as answer:
            found = answer_checks.check(referee, step, answer, reference, tree, 0.0)
    candidate_state.reload(referee)
    referee.passed(step.name, f"relative error {found.error:.2g} (eager {found.eager_error:.2g})")


def finish(referee: Referee, step: plan.Step) -> None:
    """The rest of a step whose process began while others went on.

    Raises:
        Failure: the candidate is found wanting.
    """
    calls_outside.check(referee, step, functools.partial(_again, referee, step))


def _values_beyond(referee: Referee, step: plan.Step) -> None:
    """``_values``; beyond what the graph says that the module takes a failure says where it is."""
    try:
        _values(referee, step)
    except failures.Failure as failure:
        said = not all(check.passed for check in referee.progress.checks)
        if not step.beyond or said or failure.status == "not-interpretable":
            raise
        raise referee.failed(failure.status, step.name, f"{step.name}: {failure.reason}", failure.line) from None


def needed(referee: Referee, step: plan.Step) -> int:
    """Bytes that a step takes beside the weights, as far as can be told before: inputs and outputs, of both processes."""
    inputs = sum(memory.size(t) for t in tensors_of(step.make(referee.inputs)))
    return 6 * inputs  # eager may not have got as far as an output: it is taken to be as large as the inputs


def _forward_failed(module: torch.nn.Module, inputs: Any, error: Exception) -> errors.ForwardFailed:
    """What the user is told of an error in the module's forward, with its line in the file of the class."""
    kind = type(module)
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return errors.ForwardFailed(
        path=path,
        line=failures.line_in(path, error) if path else None,
        class_name=kind.__name__,
        detail=failures.sentence(error),
        advice=misfits.dtypes(module, inputs),
    )


def _values(referee: Referee, step: plan.Step) -> compare.Comparison | None:
    """The worst comparison of a step; None where the module itself does not take such inputs."""
    tree = step.make(referee.inputs)
    names = tuple(referee.inputs.names)
    request = answer_checks.request(referee, step) | {"train": step.train}
    request |= {key: said for key in ("eval_part", "autocast") if (said := getattr(step, key))}
    try:
        seconds = _FULL_SECONDS if step.inside else _OTHER_SECONDS
        reference = referee.oracle.answer(tree, step.train, seconds)
        request["seed"] = referee.oracle.seed  # known from the first answer on
        if step.train and referee.oracle.seed is None and not _repeats(referee, tree, reference):
            return _random_training(referee, step, tree, request)
    except (torch.OutOfMemoryError, failures.Failure):
        raise
    except Exception as error:
        if step.required:
            raise _forward_failed(referee.module, tree, error) from None
        return None  # the module itself does not take such inputs
    if step.late and "most_seconds" in request and sum(t.numel() for t in tensors_of(reference.eager)) > _MOST_ELEMENTS:
        referee.progress.limits.append(f"{step.name} (its results are too large for the interpreter)")
        return None
    if step.decoy and not any(t.numel() for t in tensors_of(reference.eager)) and not step.inside:
        return _values(referee, _at_the_example_sizes(step, referee))
    if step.decoy and not _tells(reference):
        # A result of nothing but NaN is the same whatever the kernels do; the example's own values make sense.
        step, tree, reference = _where_it_tells(referee, step, seconds)
    sides = referee.sides
    if reference.mutated and any(0 in t.stride() for t in tensors_of(tree)):
        return None  # no memory to write to for each element: torch takes none of these in place
    if step.required:
        referee.outputs = without_memory(reference.eager)
    eager_error = 0.0
    if reference.exact is None and not reference.slices and referee.oracle.seed is None:
        eager_error = _at_the_largest_size(referee, step, reference)
    for repetition in range(2 if step.repeat else 1):
        began = time.monotonic()
        with referee.asking(request, (*tree, None), reference.eager, names) as answer:
            slow = referee.mode == "interpreter" and time.monotonic() - began > 2 * answer_checks.LAUNCH_SECONDS
            found = answer_checks.check(referee, step, answer, reference, tree, eager_error)
            if step.required:
                referee.progress.envelope = answer.message["envelope"]
            if repetition == 0 and step.decoy:
                # A copy: the next call's answer will lie in other memory.
                out = copied(answer.tree)
                message = answer.message
        if (step.inside and (not step.repeat or reference.attributes)) or (repetition and reference.after):
            # Also after the second call: the kernels may then be replayed from a graph that the first one captured.
            kept_state.check(referee, step, reference, tree)
        if repetition == 0 and step.decoy:
            if not message["launches"] and not step.inside and referee.progress.launched:
                return _values(referee, _at_the_example_sizes(step, referee))  # eager takes the others
            decoy.check(referee, request, tree, reference, out, message)
        if slow:
            break  # the interpreter repeats itself exactly; caching shows in the other steps
    if answer.message["launches"]:
        conditions.note(referee, step, tree, reference, sides)
    said = f"relative error {found.error:.2g} (eager {found.eager_error:.2g})"
    referee.passed(step.name, f"{plan.shapes(referee.inputs, tree)}: {said}")
    return found


def _at_the_example_sizes(step: plan.Step, referee: Referee) -> plan.Step:
    """The same step for a kernel that takes no other sizes than those."""
    sizes = dict(referee.inputs.example_sizes)
    return dataclasses.replace(step, make=lambda inputs: inputs.sample(sizes, "normal", 14), sizes=sizes, inside=True)


def _where_it_tells(referee: Referee, step: plan.Step, seconds: float) -> tuple[plan.Step, Any, Reference]:
    """The step with the example's own values, its arguments and the answer to them.

    It is at its own sizes, or where all is NaN there, since a module divides by what is 0 at small ones, at the first twice as large at
    which it is not, if there are any up to the example's.
    """
    sizes, whole = dict(step.sizes or {}), referee.inputs.example_sizes
    found: tuple[plan.Step, Any, Reference] | None = None
    while True:
        at = dataclasses.replace(_with_the_examples_values(step, sizes), inside=step.inside and found is None)
        tree = at.make(referee.inputs)
        try:
            answer = at, tree, referee.oracle.answer(tree, step.train, seconds)
        except (torch.OutOfMemoryError, failures.Failure):
            raise
        except Exception:
            if found is None:
                raise
        else:
            found = found or answer
            if _tells(answer[2]):
                return answer
        if found is not None and all(sizes.get(s, n) == n for s, n in whole.items()):
            return found
        sizes = {s: min(2 * sizes.get(s, n), n) for s, n in whole.items()}


def _with_the_examples_values(step: plan.Step, sizes: dict[str, int]) -> plan.Step:
    return dataclasses.replace(step, make=lambda inputs: inputs.example(sizes), sizes=sizes)


def _tells(reference: Reference) -> bool:
    """Whether any element of the answer is a finite number."""
    tensors = tensors_of(reference.eager)
    floats = [t for t in tensors if t.dtype.is_floating_point]
    return len(floats) < len(tensors) or not floats or any(bool(torch.isfinite(t.float()).any()) for t in floats)


def _at_the_largest_size(referee: Referee, step: plan.Step, reference: Reference) -> float:
    """Where float64 does not fit: the same check at smaller sizes, which is said; eager's own error there."""
    referee.progress.limits.append(reference.said)
    sizes = dict(step.sizes or {})
    elements = referee.inputs.elements(sizes)
    while sizes and any(n > 2 for n in sizes.values()):
        largest = max(sizes, key=lambda s: sizes[s])
        sizes[largest] //= 2
        if referee.inputs.elements(sizes) * reference.need <= 0.4 * reference.there * elements:
            break
    else:
        return 0.0  # the sizes are fixed: eager is all there is to compare with
    smaller = dataclasses.replace(
        step,
        name=f"{step.name}, at the largest size that float64 has room for",
        make=lambda inputs: inputs.example(sizes),
        sizes=sizes,
        required=False,
        inside=False,
        repeat=False,
        decoy=False,
    )
    found = _values(referee, smaller)
    return found.eager_error if found is not None else 0.0


def _again(referee: Referee, step: plan.Step, tree: tuple[Any, Any], reference: Reference) -> None:
    """The same call in the trial, every program instance of it.

    Raises:
        Failure: it is wrong there, too.
    """
    names = tuple(referee.inputs.names)
    request = {"do": "call", "names": list(names), "seed": referee.oracle.seed}
    with referee.asking(request, (*tree, None), reference.eager, names) as answer:
        answer_checks.check(referee, step, answer, reference, tree, 0.0)


def _random_training(
    referee: Referee, step: plan.Step, tree: Any, request: dict[str, Any]
) -> compare.Comparison | None:
    """Train mode of a module that draws random numbers there: compared with eager under equal random states.

    Where the numbers differ the candidate may draw others, which is said; but not none.
    """
    names = tuple(referee.inputs.names)
    with referee.oracle.drawing(SEED):
        reference = referee.oracle.answer(tree, train=True)

    def asked(seed: int) -> Any:
        with referee.asking({**request, "seed": seed}, (*tree, None), reference.eager, names) as answer:
            return copied(answer.tree)

    out = asked(SEED)
    found = compare.agree(out, agreement.plainly(reference.eager), referee.explained)
    if found.passed:
        referee.passed(step.name, "under equal random states it gives what eager gives")
        return None
    began = time.monotonic()
    again = asked(SEED + 1)  # the first call may have compiled
    seconds = time.monotonic() - began
    left = referee.trial.deadline - time.monotonic()
    draws = draw_statistics.MANY if draw_statistics.MANY * seconds <= _DRAWING * left else draw_statistics.FEW
    if agreement.identical(out, again):
        reason = "in train mode the module draws random numbers (dropout, say), it does not"
        raise referee.failed("wrong", step.name, reason)
    outs = [asked(SEED + i) for i in range(2, draws + 2)]
    theirs = []
    for i in range(2, draws + 2):
        with referee.oracle.drawing(SEED + i):
            theirs.append(referee.oracle.answer(tree, train=True).eager)
    if said := draw_statistics.difference(outs, theirs):
        reason = f"in train mode its random results are of another distribution than the module's: {said}"
        raise referee.failed("wrong", step.name, reason)
    referee.progress.limits.append("train mode: it draws other random numbers than eager")
    return None


def _small_parameters(referee: Referee, step: plan.Step) -> None:
    """With parameters and buffers near zero, where a small constant beside them (eps) decides."""
    try:
        referee.oracle.scale(1 / 16384)
        candidate_state.send_state(referee)
        _values(referee, step)
    finally:
        referee.oracle.scale(16384.0)
    candidate_state.send_state(referee)


def _configurations(referee: Referee, step: plan.Step) -> None:
    """Every configuration of the autotuned kernels, at a small size; which one is chosen depends on the machine."""
    if not candidate_state.autotunes(referee):
        return
    began, tried, count = time.monotonic(), 0, 1
    while tried < count:
        number = tried
        if time.monotonic() - began > _CONFIGURATIONS_SECONDS and not referee.thorough:
            break
        tree = step.make(referee.inputs)
        reference = referee.oracle.answer(tree)
        request = {"do": "call", "names": list(referee.inputs.names), "configuration": number}
        try:
            with referee.asking(request, (*tree, None), reference.eager, tuple(referee.inputs.names)) as answer:
                named = dataclasses.replace(step, name=f"{step.name}, number {number + 1}")
                answer_checks.check(referee, named, answer, reference, tree, 0.0)
        except failures.Failure as failure:
            if failure.status != "compile-error":  # an autotuner passes over what does not compile
                raise
        tried += 1
        count = min(_MOST_CONFIGURATIONS, max(referee.autotuned.values(), default=1))
    if count < 2:
        return
    names = ", ".join(sorted(referee.autotuned))
    if tried < count:
        referee.progress.limits.append(f"{count - tried} of {count} configurations of {names}")
    referee.passed(step.name, f"{tried} of {count} of {names}")


def _many_calls(referee: Referee, step: plan.Step) -> None:
    """The same call again and again, as many times as there is time for: a kernel may count its calls."""
    tree = step.make(referee.inputs)
    try:
        reference = referee.oracle.answer(tree)
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return
    names = tuple(referee.inputs.names)
    request = {"do": "call", "names": list(names), "seed": referee.oracle.seed}
    most = random.SystemRandom().randint(_CALLS // 2, _CALLS) * (10 if referee.thorough else 1)
    seconds = _CALLS_SECONDS * (40 if referee.thorough else 1)
    began, count = time.monotonic(), 0
    while count < most and time.monotonic() - began < seconds:
        request["primed"] = count == 0 and referee.oracle.seed is None
        with referee.asking(request, (*tree, None), reference.eager, names) as answer:
            answer_checks.check(referee, step, answer, reference, tree, 0.0)
        count += 1
    referee.passed(step.name, f"{count} calls")


def _repeats(referee: Referee, tree: tuple[Any, Any], reference: Reference) -> bool:
    """Whether eager in train mode is a function of its inputs at all (dropout is not), but for its rounding.

    A library's sums may come in another order each time (cuDNN's transposed convolutions): then equal random states make no
    difference, and what comes out agrees as far as eager is exact at all.
    """
    with randomness.other():
        again = referee.oracle.answer(tree, train=True)
    if agreement.identical(reference.eager, again.eager):
        return True
    pair = []
    for _ in range(2):
        with referee.oracle.drawing(SEED):
            pair.append(referee.oracle.answer(tree, train=True).eager)
    if agreement.identical(*pair):
        return False
    return compare.agree(agreement.plainly(reference.eager), agreement.plainly(again.eager), referee.eager_error).passed
