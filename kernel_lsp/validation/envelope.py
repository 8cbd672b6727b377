"""Where a candidate may leave the work to eager, and has to be right all the same: gradients, another dtype."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp.validation import agreement, backward, channel, compare, failures, plan, state
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.trees import copied, doubled, tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: inputs of which gradients are required each by itself
_MOST_ALONE = 3
#: seconds of a call after which there are no further ones with gradients
_SLOW_SECONDS = 0.5
_CONVERTED = "with module and inputs converted to float64"


def gradients(referee: Referee, step: plan.Step) -> None:
    """With gradients required of all or of a part: eager's own, or its own kernels' that agree with them. Results as without.

    Raises:
        Failure: they do not agree, or the candidate fails there.
    """
    tree = step.make(referee.inputs)
    tensors = tensors_of(tree)
    wanted = [i for i, t in enumerate(tensors) if t.dtype.is_floating_point or t.dtype.is_complex]
    try:
        reference = referee.oracle.answer(tree)
        outs = tensors_of(reference.eager)
        generator = torch.Generator(outs[0].device).manual_seed(11)
        cotangents = [
            torch.randn(t.shape, generator=generator, device=t.device).to(t.dtype)
            if t.dtype.is_floating_point
            else torch.zeros_like(t)
            for t in outs
        ]
        found = backward.gradients(referee.oracle, tree, cotangents, wanted)
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return  # the module itself has no gradients
    if found is None:
        return
    eager, exact, requires = found
    asked = Required("", wanted, False, requires, eager, exact)
    seconds = _required(referee, step, tree, cotangents, reference, asked)
    if seconds > _SLOW_SECONDS and not referee.thorough:
        referee.progress.limits.append(
            f"{step.name} of a part of the inputs and parameters (its calls take {seconds:.1f} s here)"
        )
        return
    for asked in _parts(referee, tree, wanted, eager, exact):
        _required(referee, step, tree, cotangents, reference, asked)
    if not referee.oracle.moves:
        _in_inference_mode(referee, step, tree, reference)


@dataclass
class Required:
    """What gradients are required of, and what the module then gives."""

    of: str  # in words: " of x alone"; empty for all inputs and parameters
    inputs: list[int]
    frozen: bool  # no parameter requires a gradient
    requires: list[bool]  # which outputs do
    eager: list[Any]  # gradients, of the inputs and then of the parameters
    exact: list[Any]


def _parts(referee: Referee, tree: Any, wanted: list[int], eager: list[Any], exact: list[Any]) -> Iterator[Required]:
    """Gradients required of single inputs, of the parameters, and of nothing, as in a fine-tuning and in a call outside of no_grad."""
    parameters = len(eager) > len(wanted)
    ways: list[tuple[str, list[int], bool, slice]] = []
    if len(wanted) > 1 or parameters:
        for at, i in enumerate(wanted[:_MOST_ALONE]):
            ways.append((f" of {referee.inputs.names[i]} alone", [i], True, slice(at, at + 1)))
    if wanted and parameters:
        ways.append((" of the parameters alone", [], False, slice(len(wanted), None)))
    ways.append((" of nothing in a call where they could be", [], True, slice(0, 0)))
    for of, inputs, frozen, part in ways:
        try:
            requires = backward.requires(referee.oracle, tree, inputs, frozen)
        except torch.OutOfMemoryError:
            raise
        except Exception:
            continue
        yield Required(of, inputs, frozen, requires, eager[part], exact[part])


def _required(
    referee: Referee, step: plan.Step, tree: Any, cotangents: list[Any], reference: Reference, asked: Required
) -> float:
    """The seconds that the candidate took."""
    names = tuple(referee.inputs.names)
    request = {"do": "call", "names": list(names), "grad_mode": True, "grad": asked.inputs, "frozen": asked.frozen}
    where = f"with gradients required{asked.of}"
    checks = len(referee.progress.checks)
    try:
        with referee.asking(request, (*tree, cotangents), (reference.eager, asked.eager), names) as answer:
            message, result, seconds = answer.message, answer.tree, answer.seconds
            if message["requires"] != asked.requires:
                detached = any(theirs > mine for theirs, mine in zip(asked.requires, message["requires"], strict=False))
                reason = "its output is detached, the module's is not" if detached else "its output requires them, too"
                raise referee.failed("wrong", step.name, f"{where} {reason}")
            out, got = result if isinstance(result, (tuple, list)) and len(result) == 2 else (None, None)
            found = compare.compare(got, agreement.plainly(asked.eager), agreement.plainly(asked.exact), "gradient")
            values = agreement.compared(referee, out, reference, 0.0, tree)
    except failures.Failure as failure:
        if len(referee.progress.checks) > checks:
            raise
        raise referee.failed(failure.status, step.name, f"{where} it fails: {failure.reason}", failure.line) from None
    if message["launches"]:  # else eager's own, of both: gradients that are zero but for rounding have any error
        agreement.noted(referee, found)
    for one in (found, values):
        if not one.passed:
            raise referee.failed("wrong", step.name, f"{where}: {one.reason}")
    if not asked.of:
        how = "runs eager" if not message["launches"] else "computes gradients with its kernels"
        numbers = f"relative error {found.error:.2g} (eager {found.eager_error:.2g})"
        referee.passed(step.name, f"{where} it {how}: {numbers}")
    return seconds


def _in_inference_mode(referee: Referee, step: plan.Step, tree: Any, reference: Reference) -> None:
    names = tuple(referee.inputs.names)
    checks, where = len(referee.progress.checks), "under torch.inference_mode"
    request = {"do": "call", "names": list(names), "inference": True}
    try:
        with referee.asking(request, (*tree, None), reference.eager, names) as answer:
            found = agreement.compared(referee, answer.tree, reference, 0.0, tree)
    except failures.Failure as failure:
        if len(referee.progress.checks) > checks:
            raise
        raise referee.failed(failure.status, step.name, f"{where} it fails: {failure.reason}", failure.line) from None
    if not found.passed:
        raise referee.failed("wrong", step.name, f"{where}: {found.reason}")


def another_dtype(referee: Referee, step: plan.Step) -> None:
    """Module and inputs converted to float64: it must be as exact as eager is there. Last, since the module is converted.

    A module may compute in float32 all the same: it converts to float32 itself, its inputs are integers, or it makes tensors of
    the default dtype. Then eager has an error there, and a kernel may have three times that.

    Raises:
        Failure: it does not, or fails there.
    """
    if referee.oracle.double is None:
        return
    tree = doubled(step.make(referee.inputs))
    try:
        args, kwargs = copied(tree)
        with torch.no_grad(), state.unchanged(referee.oracle.double):
            # Attributes are as the candidate gets them: no conversion of the module changes their dtype.
            state.put_back(referee.oracle.double, referee.oracle.moving(), only_known=True, anew=True)
            result = channel.plain(referee.oracle.double.train(referee.training)(*args, **kwargs))
            expected = copied(result)  # what is put back must not change it
        theirs = right = agreement.plainly(expected)
        exact = referee.oracle.exact(tree, referee.training, [])
        if exact is not None and compare.structure(exact) == compare.structure(expected):
            right = agreement.plainly(exact)
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return
    names = tuple(referee.inputs.names)
    try:
        referee.ask({"do": "to", "dtype": "float64"})
        with referee.asking({"do": "call", "names": list(names)}, (*tree, None), expected, names) as answer:
            found = compare.compare(answer.tree, theirs, right)
            launched = answer.message["launches"]
    except failures.Failure as failure:
        reason = f"{_CONVERTED} it fails: {failure.reason}"
        raise referee.failed(failure.status, step.name, reason, failure.line) from None
    if not found.passed:
        raise referee.failed("wrong", step.name, f"{_CONVERTED}: {found.reason}")
    how = "its kernels take it" if launched else "it runs eager"
    referee.passed(step.name, f"{how}: relative error {found.error:.2g} (eager {found.eager_error:.2g})")
