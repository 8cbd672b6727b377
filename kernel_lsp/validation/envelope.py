"""Where a candidate may leave the work to eager, and has to be right all the same: gradients, another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from kernel_lsp.validation import agreement, backward, channel, compare, failures, plan, state
from kernel_lsp.validation.trees import copied, doubled, tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

_CONVERTED = "with module and inputs converted to float64"


def gradients(referee: Referee, step: plan.Step) -> None:
    """With gradients required: eager's own, or its own kernels' that agree with them.

    Raises:
        Failure: they do not agree, or the candidate fails there.
    """
    tree = step.make(referee.inputs)
    tensors = tensors_of(tree)
    wanted = [i for i, t in enumerate(tensors) if t.dtype.is_floating_point or t.dtype.is_complex]
    try:
        eager_out = referee.oracle.answer(tree).eager
        outs = tensors_of(eager_out)
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
    names = tuple(referee.inputs.names)
    request = {"do": "call", "names": list(names), "grad_mode": True, "grad": wanted}
    try:
        with referee.asking(request, (*tree, cotangents), (eager_out, eager), names) as answer:
            message, result = answer.message, answer.tree
            if message["requires"] != requires:
                reason = "with gradients required its output is detached, the module's is not"
                raise referee.failed("wrong", step.name, reason)
            got = result[1] if isinstance(result, (tuple, list)) and len(result) == 2 else None
            found_errors = compare.compare(got, agreement.plainly(eager), agreement.plainly(exact), "gradient")
    except failures.Failure as failure:
        if referee.progress.checks and not referee.progress.checks[-1].passed:
            raise
        reason = f"with gradients required it fails: {failure.reason}"
        raise referee.failed(failure.status, step.name, reason, failure.line) from None
    if message["launches"]:  # else eager's own, of both: gradients that are zero but for rounding have any error
        agreement.noted(referee, found_errors)
    if not found_errors.passed:
        raise referee.failed("wrong", step.name, f"with gradients required: {found_errors.reason}")
    how = "runs eager" if not message["launches"] else "computes gradients with its kernels"
    numbers = f"relative error {found_errors.error:.2g} (eager {found_errors.eager_error:.2g})"
    referee.passed(step.name, f"with gradients required it {how}: {numbers}")


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
