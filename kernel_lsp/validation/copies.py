"""A second module of the candidate's class beside the first: what is kept for one must not serve the other.

Of a copy each parameter and buffer is a tensor of its own with other values and the version counter of the first one's. So what is kept by
version counters or by shapes alone is out of date, and so is what refers to the parameters of the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp.validation import answer_checks, failures, memory, plan
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.trees import PLAIN

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: bytes of weights up to which the check is made
_MOST_WEIGHTS = 256 << 20
_SEED = 23


def check(referee: Referee, step: plan.Step) -> None:
    """Call the module, a copy of it with other weights, and the module again.

    Raises:
        Failure: one of them gives something else than the module does with its weights.
    """
    held = memory.of_state(referee.module)
    if not held:
        return
    if held > _MOST_WEIGHTS:
        referee.progress.limits.append(f"{step.name} (the weights take {memory.text(held)})")
        return
    tree = step.make(referee.inputs)
    values = {name: value.clone() for name, value in referee.module.state_dict().items()}
    try:
        before = referee.oracle.answer(tree)
        _call(referee, step, tree, before, "before a copy of it is made")
        try:
            referee.oracle.perturb(_SEED)
            theirs = referee.oracle.answer(tree)
            if not referee.ask({"do": "copy"}, dict(referee.module.state_dict()))["copied"]:
                referee.progress.limits.append("copies of its module (copy.deepcopy fails)")
            _call(referee, step, tree, theirs, "of a copy with other weights")
        finally:
            referee.oracle.give(values)
        referee.ask({"do": "original_again"})
        _call(referee, step, tree, before, "after a copy with other weights")
    except failures.Failure:
        raise
    except torch.OutOfMemoryError:  # other checks follow
        referee.ask({"do": "original_again"})
        raise
    except Exception:
        referee.ask({"do": "original_again"})
        return  # the module itself does not take such inputs
    referee.passed(step.name, "a call of it, of a copy with other weights, and of it again")


def _call(referee: Referee, step: plan.Step, tree: Any, reference: Reference, which: str) -> None:
    names = tuple(referee.inputs.names)
    checks = len(referee.progress.checks)
    try:
        with referee.asking({"do": "call", "names": list(names)}, (*tree, None), reference.eager, names) as answer:
            answer_checks.check(referee, step, answer, reference, tree, 0.0)
    except failures.Failure as failure:
        del referee.progress.checks[checks:]
        raise referee.failed(failure.status, step.name, f"the call {which}: {failure.reason}", failure.line) from None


def give(module: torch.nn.Module, like: torch.nn.Module, state: dict[str, torch.Tensor]) -> None:
    """Give ``module`` tensors of its own with the values of ``state``, as often changed as those of ``like`` by their counters."""
    made: dict[int, torch.Tensor] = {}  # what is shared within the module stays shared
    theirs = dict(like.named_modules())
    for path, owner in module.named_modules():
        first = theirs.get(path)
        for name, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is None or type(tensor) not in PLAIN:
                continue
            if id(tensor) not in made:
                given = state.get(f"{path}.{name}" if path else name, tensor).detach().to(tensor, copy=True)
                new = torch.nn.Parameter(given, tensor.requires_grad) if name in owner._parameters else given
                counted = (first._parameters.get(name), first._buffers.get(name)) if first is not None else ()
                for old in counted:
                    if old is not None and not old.is_inference():
                        torch._C._autograd._unsafe_set_version_counter((new,), (old._version,))
                made[id(tensor)] = new
            (owner._parameters if name in owner._parameters else owner._buffers)[name] = made[id(tensor)]
