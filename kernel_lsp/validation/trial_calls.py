"""What is done around a call of the candidate: a call before it with other values, gradients, a look at where its inputs lie."""

from __future__ import annotations

import contextlib
import traceback
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.validation import state
from kernel_lsp.validation.chunks import identical


def prime(
    module: torch.nn.Module,
    args: Any,
    kwargs: Any,
    tensors: list[torch.Tensor],
    words: contextlib.AbstractContextManager[Any],
) -> None:
    """Call with the same tensors, holding other values: a result kept by a tensor's identity or address is then wrong."""
    values, before = [t.clone() for t in tensors], state.snapshot(module)
    for tensor in tensors:
        if tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1 and 0 not in tensor.stride():
            tensor.mul_(0.5)
    try:
        with torch.no_grad(), words:
            module(*args, **kwargs)
    except Exception:  # the call that counts will say what is wrong
        traceback.print_exc()
    for tensor, value in zip(tensors, values, strict=True):
        if not identical(tensor, value):
            tensor.copy_(value)
    state.put_back(module, before, only_known=True)


def count_a_change(module: torch.nn.Module) -> None:
    """Move the version counters of what a module holds, as a change of it does.

    What a candidate keeps of weights by these counters, and has computed without all of its launches, is then out of date in the next call.
    """
    held = [*module.parameters(), *module.buffers()]
    torch.autograd.graph.increment_version([tensor for tensor in held if not tensor.is_inference()])


def gradients(
    module: torch.nn.Module, out: Any, inputs: list[torch.Tensor], cotangents: list[torch.Tensor]
) -> list[Any]:
    """Of the inputs, then of the parameters; None where there is none."""
    tensors = [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
    pairs = [(t, c.to(t.device)) for t, c in zip(tensors, cotangents, strict=False) if t.requires_grad]
    wanted = [*inputs, *(p for p in module.parameters() if p.requires_grad)]
    if not pairs or not wanted:
        return [None] * len(wanted)
    outs, grads = zip(*pairs, strict=True)
    return list(torch.autograd.grad(outs, wanted, grads, allow_unused=True))


def moved(tensors: list[torch.Tensor], places: list[int], names: list[str]) -> list[str]:
    """A sentence for an input that lies in other memory than before."""
    moved = [i for i, t in enumerate(tensors) if t.untyped_storage().data_ptr() != places[i]]
    return [f"it puts other memory in place of {names[moved[0]]}"] if moved else []
