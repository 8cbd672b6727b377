"""What a call leaves in buffers, attributes and parameters: the candidate's against the module's, by the standard of results.

What the call changed is compared with float64, and eager's own error there is the yardstick: a cache that is nearly empty, or
sums that cancel, are off by their rounding in eager, too. The running mean of a batch norm is subtracted from values that are
then divided by their standard deviation, so its error counts beside that of the batch: behind a convolution of normalized values it
is zero but for rounding, and any two ways to add up differ by more than it is.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules.batchnorm import _NormBase

from kernel_lsp.validation import agreement, compare, memory, plan
from kernel_lsp.validation.oracle import Reference

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: bytes of parameters up to which they are looked at after a call
_FEW = 16 << 20


def check(referee: Referee, step: plan.Step, reference: Reference, tree: tuple[Any, Any]) -> None:
    """The candidate's buffers, attributes and parameters, running statistics among them, are the module's after as many calls.

    ``tree``: the inputs of the last call, whose answer is ``reference``.

    Raises:
        Failure: they are not.
    """
    expected: dict[str, torch.Tensor] = {k: reference.after.get(k, v) for k, v in referee.module.named_buffers()}
    expected |= {path: reference.after[path] for path in reference.attributes}
    parameters = {k: p.detach() for k, p in referee.module.named_parameters()}
    few = sum(map(memory.size, parameters.values())) <= _FEW
    if few:
        expected |= parameters
    if not expected:
        return
    when = f"after a call{' in training mode' if referee.training else ''}"
    with referee.asking(
        {"do": "buffers", "parameters": few, "attributes": [*reference.attributes]}, expected=expected
    ) as answer:
        mine = {name: tensor.to(referee.inputs.device) for name, tensor in answer.tree.items()}

    def what(name: str) -> str:
        return "parameter" if name in parameters else "attribute" if name in reference.attributes else "buffer"

    if missing := sorted(expected.keys() - mine.keys()):
        reason = f"{when} it has no {what(missing[0])} {missing[0]!r}"
        raise referee.failed("wrong", step.name, f"{step.name}: {reason}")
    for name, theirs in expected.items():
        found = _compared(referee, step, reference, tree, name, mine[name], theirs, f"{what(name)} {name}")
        if not found.passed:
            raise referee.failed("wrong", step.name, f"{step.name}: {when} {found.reason}")


def _compared(
    referee: Referee,
    step: plan.Step,
    reference: Reference,
    tree: tuple[Any, Any],
    name: str,
    mine: torch.Tensor,
    theirs: torch.Tensor,
    said: str,
) -> compare.Comparison:
    """One tensor that the module holds at the path ``name``; ``said``: what messages call it."""
    exact = reference.exact_after.get(name)
    if not isinstance(exact, torch.Tensor) or exact.shape != theirs.shape:
        if name in reference.after and reference.exact is None:  # no float64 here: both may be off
            return compare.agree(mine, theirs, referee.explained, said)
        return compare.compare(mine, theirs, theirs, said, eager_error=referee.explained)
    scales = _scales(referee, reference, name, exact)
    found = compare.compare(mine, theirs, exact, said, scales, eager_error=referee.explained)
    if not found.passed and math.isfinite(found.error):
        floors, elsewhere = agreement.rounding(referee, tree, reference, step.train, found, [name])
        elsewhere = max(elsewhere, referee.explained)
        found = compare.compare(mine, theirs, exact, said, scales, floors=floors, eager_error=elsewhere)
    return found


def _scales(referee: Referee, reference: Reference, name: str, exact: torch.Tensor) -> list[torch.Tensor] | None:
    """Beside what an error counts where that is not the tensor's own mean: of a running mean, the deviation that goes with it.

    A running mean m moves by ``momentum`` times the batch's mean. The batch's variance follows from how the running variance moves;
    its root, times the momentum, is the scale.
    """
    owner, _, kind = name.rpartition(".")
    path = f"{owner}.running_var".lstrip(".")
    double, after = referee.oracle.double, reference.exact_after.get(path)
    if kind != "running_mean" or double is None or not isinstance(after, torch.Tensor):
        return None
    if name not in dict(double.named_buffers()) or not isinstance(norm := double.get_submodule(owner), _NormBase):
        return None
    momentum = norm.momentum
    if momentum is None:  # the mean of all batches
        counted = reference.exact_after.get(f"{owner}.num_batches_tracked".lstrip("."))
        momentum = 1 / max(1, int(counted)) if isinstance(counted, torch.Tensor) else 0.0
    before = operator.attrgetter(path)(double)
    if not momentum or not isinstance(before, torch.Tensor):
        return None
    of_batch = ((after - (1 - momentum) * before.to(after.device)) / momentum).clamp_min(0).sqrt()
    return [torch.maximum(compare.scale_of(exact), momentum * compare.scale_of(of_batch).to(exact.device))]
