"""Indices out of range, for a candidate that is to check them (``bounds = "check"``): where eager raises, it has to.

What eager does is tried on the CPU. On a GPU an index out of range ends the process's CUDA context, and the referee's
has to last; the candidate's own process is put at risk only after all other checks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp.validation import failures, plan, state
from kernel_lsp.validation.duplicates import duplicate
from kernel_lsp.validation.inputs import is_integer
from kernel_lsp.validation.trees import copied, on_cpu, tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: what torch says of an index that is out of range, on the CPU; its class differs with the operator
_SAID = re.compile(r"out of (range|bounds|DATA bounds)", re.IGNORECASE)
_RAISED = re.compile(r"(IndexError|RuntimeError): ")
#: extents of tensors that are tried as an index
_MOST_EXTENTS = 200


def check(referee: Referee, step: plan.Step) -> None:
    """Give each integer input an index beyond the end, then a negative one.

    Raises:
        Failure: eager raises for one, and the candidate does not.
    """
    tree = step.make(referee.inputs)
    module = referee.module if referee.inputs.device.type == "cpu" else duplicate(referee.module).cpu()
    if _raised(module, tree, referee.training) is not None:
        return  # not even the example's own values are taken on the CPU
    expected = referee.oracle.answer(tree).eager
    extents = _extents(module, tree)
    tried: list[str] = []
    for i, tensor in enumerate(tensors_of(tree)):
        if not is_integer(tensor.dtype) or not tensor.numel():
            continue
        name = referee.inputs.leaves[i].name
        info = torch.iinfo(tensor.dtype)
        for values in (extents, [-1]):
            fitting = [value for value in values if info.min <= value <= info.max]
            wrong = ((v, _with(tree, i, v, everywhere)) for v in fitting for everywhere in (False, True))
            found = next(((v, bad) for v, bad in wrong if _is_out_of_range(module, bad, referee.training)), None)
            if found is not None:
                _ask(referee, step, found[1], expected, f"{found[0]} in {name}")
                tried.append(f"{found[0]} in {name}")
    if tried:
        if not referee.inputs.computes_indices:  # no value is known for which those are out of range
            referee.progress.limits.remove(plan.OUT_OF_RANGE)
        referee.passed(step.name, f"it raises an error for {', '.join(tried)}")


def _ask(referee: Referee, step: plan.Step, tree: Any, expected: Any, what: str) -> None:
    request = {"do": "call", "names": list(referee.inputs.names)}
    try:
        with referee.asking(request, (*tree, None), expected, tuple(referee.inputs.names)):
            pass
    except failures.Failure as failure:
        if _RAISED.match(failure.reason) and _SAID.search(failure.reason):
            return
        reason = f"the index {what} is out of range, where eager raises an error; it does not check: {failure.reason}"
        raise referee.failed("wrong", step.name, reason, failure.line) from None
    reason = f"the index {what} is out of range, where eager raises an error; it gives numbers (bounds = check)"
    raise referee.failed("wrong", step.name, reason)


def _extents(module: torch.nn.Module, tree: Any) -> list[int]:
    """The extents of all tensors, the least first: the first index beyond the end of a table is its extent."""
    held = [*module.parameters(), *module.buffers(), *tensors_of(tree)]
    return sorted({n for tensor in held for n in tensor.shape})[:_MOST_EXTENTS]


def _with(tree: Any, place: int, value: int, everywhere: bool) -> Any:
    """A copy of the inputs with ``value`` as the last element of one of them, or as all: forward may use but a part."""
    tree = copied(tree)
    tensor = tensors_of(tree)[place]
    tensor[... if everywhere else (-1,) * tensor.dim()] = value
    return tree


def _is_out_of_range(module: torch.nn.Module, tree: Any, training: bool) -> bool:
    error = _raised(module, tree, training)
    return isinstance(error, IndexError | RuntimeError) and _SAID.search(str(error)) is not None


def _raised(module: torch.nn.Module, tree: Any, training: bool) -> Exception | None:
    args, kwargs = on_cpu(copied(tree))
    with torch.no_grad(), state.unchanged(module):
        try:
            module.train(training)(*args, **kwargs)
        except Exception as error:
            return error
    return None
