"""The module converted to a half type after its construction, with inputs of that dtype: ``module.half()``, ``module.to(torch.bfloat16)``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.validation import answer_checks, failures, memory, plan
from kernel_lsp.validation.duplicates import duplicate
from kernel_lsp.validation.oracle import Oracle
from kernel_lsp.validation.trees import convert

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: bytes of weights up to which the check is made: there are three more copies of them meanwhile
_MOST_WEIGHTS = 256 << 20


def check(referee: Referee, step: plan.Step) -> None:
    """Compare with a converted copy of the module; the candidate is a copy that is converted, too.

    Raises:
        Failure: they do not agree, or the candidate fails there.
    """
    held, dtype = memory.of_state(referee.module), getattr(torch, step.dtype)
    tensors = [*referee.module.parameters(), *referee.module.buffers()]
    if all(t.dtype is dtype or not t.dtype.is_floating_point for t in tensors):
        return  # inputs of another dtype alone are other checks
    if held > _MOST_WEIGHTS:
        referee.progress.limits.append(f"{step.name} (the weights take {memory.text(held)})")
        return
    tree = pytree.tree_map(lambda value: _converted(value, dtype), step.make(referee.inputs))
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_module_converted(referee, dtype))
            reference = referee.oracle.answer(tree)
        except torch.OutOfMemoryError:
            raise
        except Exception:
            return  # the module itself does not take it
        names = tuple(referee.inputs.names)
        request = answer_checks.request(referee, step)
        checks = len(referee.progress.checks)
        try:
            referee.ask({"do": "copy"}, dict(referee.module.state_dict()))
            referee.ask({"do": "to", "dtype": step.dtype})
            with referee.asking(request, (*tree, None), reference.eager, names) as answer:
                found = answer_checks.check(referee, step, answer, reference, tree, 0.0)
            launched = answer.message["launches"]
        except failures.Failure as failure:
            if failure.status == "not-interpretable":
                referee.ask({"do": "original_again"})
                raise
            del referee.progress.checks[checks:]
            reason = f"with module and inputs converted to {step.dtype}: {failure.reason}"
            raise referee.failed(failure.status, step.name, reason, failure.line) from None
        except torch.OutOfMemoryError:  # other checks follow
            referee.ask({"do": "original_again"})
            raise
        referee.ask({"do": "original_again"})
    how = "its kernels take it" if launched else "it runs eager"
    referee.passed(step.name, f"{how}: relative error {found.error:.2g} (eager {found.eager_error:.2g})")


@contextlib.contextmanager
def _module_converted(referee: Referee, dtype: torch.dtype) -> Iterator[None]:
    """Within the context a converted copy of the module answers; its float64 has the weights that were rounded.

    Raises:
        Exception: the module cannot be copied or converted.
    """
    module = duplicate(referee.module)
    convert(module, dtype)
    before = referee.oracle
    referee.oracle = Oracle(module, before.independent, before.training, before.around)
    try:
        yield
    finally:
        referee.oracle = before


def _converted(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
