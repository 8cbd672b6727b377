"""What gradients the module has: eager's own, and those of the module in float64."""

from __future__ import annotations

from typing import Any

import torch

from kernel_lsp.validation import channel, state
from kernel_lsp.validation.oracle import Oracle
from kernel_lsp.validation.trees import copied, doubled, tensors_of


def gradients(
    oracle: Oracle, tree: tuple[Any, Any], cotangents: list[torch.Tensor], wanted: list[int]
) -> tuple[list[Any], list[Any], list[bool]] | None:
    """(eager's, float64's, which outputs require gradients): of inputs ``wanted``, then of the parameters.

    None where no output requires any.

    Raises:
        Exception: what eager raises.
    """
    eager, requires = _backward(oracle.module, oracle.training, copied(tree), cotangents, wanted)
    if not any(requires):
        return None
    exact = eager
    if oracle.double is not None:
        wide = doubled(copied(tree))
        try:
            with oracle.made_wide():
                exact, _ = _backward(oracle.double, oracle.training, wide, [c.double() for c in cotangents], wanted)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            oracle.no_double(f"{type(error).__name__} in its backward")
    return eager, exact, requires


def requires(oracle: Oracle, tree: tuple[Any, Any], wanted: list[int], frozen: bool) -> list[bool]:
    """Which outputs require gradients where those of inputs ``wanted`` are; of parameters unless ``frozen``.

    Raises:
        Exception: what eager raises.
    """
    parameters = [p for p in oracle.module.parameters() if p.requires_grad] if frozen else []
    args, kwargs = copied(tree)
    tensors = tensors_of((args, kwargs))
    try:
        for parameter in parameters:
            parameter.requires_grad_(False)
        with state.unchanged(oracle.module), torch.enable_grad():
            for i in wanted:
                tensors[i].requires_grad_()
            out = channel.plain(oracle.module.train(oracle.training)(*args, **kwargs))
            return [t.requires_grad for t in tensors_of(out)]
    finally:
        for parameter in parameters:
            parameter.requires_grad_()


def _backward(
    module: torch.nn.Module, training: bool, tree: tuple[Any, Any], cotangents: list[torch.Tensor], wanted: list[int]
) -> tuple[list[Any], list[bool]]:
    with state.unchanged(module):  # until the end: what a backward needs may be a buffer
        tensors = tensors_of(tree)
        for i in wanted:
            tensors[i].requires_grad_()
        with torch.enable_grad():
            out = channel.plain(module.train(training)(*tree[0], **tree[1]))
        outs = tensors_of(out)
        requires = [t.requires_grad for t in outs]
        leaves = [*(tensors[i] for i in wanted), *(p for p in module.parameters() if p.requires_grad)]
        pairs = [(t, c.to(t)) for t, c in zip(outs, cotangents, strict=True) if t.requires_grad]
        if not pairs or not leaves:
            return [None] * len(leaves), requires
        outs, cotangents = [t for t, _ in pairs], [c for _, c in pairs]
        return list(torch.autograd.grad(outs, leaves, cotangents, allow_unused=True)), requires
