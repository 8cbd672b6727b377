"""The right answers: the module in float64, and eager as it is."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree


@dataclass
class Reference:
    """What the module answers: in its own dtype, in float64, and which inputs it changed."""

    eager: Any
    exact: Any
    mutated: list[int]
    requires: list[bool]


class Oracle:
    """The module, and a copy of it in float64 where that runs."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self.limits: list[str] = []
        self.double: torch.nn.Module | None = None
        self._renew()

    def _renew(self) -> None:
        try:
            self.double = widen(copy.deepcopy(self.module))
        except Exception as error:
            self._no_double(f"the module cannot be copied: {type(error).__name__}")

    def _no_double(self, why: str) -> None:
        self.double = None
        said = f"the reference is eager in its own precision, not float64 ({why})"
        if said not in self.limits:
            self.limits.append(said)

    def perturb(self, seed: int) -> None:
        """Move every float parameter and persistent float buffer off its initial value, keeping its sign and scale.

        So a kernel that ignores a bias of zeros or a weight of ones is found out.
        """
        generator = torch.Generator().manual_seed(seed)
        parameters = {name for name, _ in self.module.named_parameters()}
        with torch.no_grad():
            for name, tensor in self.module.state_dict().items():
                if not tensor.dtype.is_floating_point:
                    continue
                noise = torch.randn(tensor.shape, generator=generator).to(tensor)
                finite = torch.where(torch.isfinite(tensor), tensor, 0)
                scale = finite.float().abs().mean().item() if tensor.numel() else 0.0
                if name in parameters:
                    tensor.add_(noise.mul_(0.2 * scale + (0.3 if scale == 0 else 0)))
                elif scale > 0:
                    tensor.mul_(1 + 0.1 * noise.abs_())
                elif tensor.dim():
                    tensor.add_(noise.mul_(0.1))
        self._renew()

    def answer(self, tree: tuple[Any, Any], train: bool = False) -> Reference:
        """Both answers to (args, kwargs), without gradients. Raises what eager raises."""
        args, kwargs = pytree.tree_map(_copied, tree)
        before = [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]
        with torch.no_grad():
            eager = self.module.train(train)(*args, **kwargs)
        after = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        mutated = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if not _identical(a, b)]
        requires = [False for t in pytree.tree_leaves(eager) if isinstance(t, torch.Tensor)]
        return Reference(eager, self._exact(tree, eager, train), mutated, requires)

    def _exact(self, tree: tuple[Any, Any], eager: Any, train: bool) -> Any:
        if self.double is None:
            return eager
        args, kwargs = pytree.tree_map(lambda v: _doubled(_copied(v)), tree)
        try:
            with torch.no_grad():
                exact = self.double.train(train)(*args, **kwargs)
        except Exception as error:
            self._no_double(f"{type(error).__name__} there")
            return eager
        return exact

    def gradients(
        self, tree: tuple[Any, Any], cotangents: list[torch.Tensor], wanted: list[int]
    ) -> tuple[list[Any], list[Any], list[bool]] | None:
        """(eager's, float64's, which outputs require gradients): of inputs ``wanted``, then of the parameters.

        None where no output requires any. Raises what eager raises.
        """
        eager, requires = _backward(self.module, pytree.tree_map(_copied, tree), cotangents, wanted)
        if not any(requires):
            return None
        exact = eager
        if self.double is not None:
            doubled = pytree.tree_map(lambda v: _doubled(_copied(v)), tree)
            try:
                exact, _ = _backward(self.double, doubled, [c.double() for c in cotangents], wanted)
            except Exception as error:
                self._no_double(f"{type(error).__name__} in its backward")
        return eager, exact, requires


def _backward(
    module: torch.nn.Module, tree: tuple[Any, Any], cotangents: list[torch.Tensor], wanted: list[int]
) -> tuple[list[Any], list[bool]]:
    tensors = [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]
    for i in wanted:
        tensors[i].requires_grad_()
    with torch.enable_grad():
        out = module.eval()(*tree[0], **tree[1])
    outs = [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
    requires = [t.requires_grad for t in outs]
    leaves = [*(tensors[i] for i in wanted), *(p for p in module.parameters() if p.requires_grad)]
    pairs = [(t, c.to(t)) for t, c in zip(outs, cotangents, strict=True) if t.requires_grad]
    if not pairs or not leaves:
        return [None] * len(leaves), requires
    outs, cotangents = [t for t, _ in pairs], [c for _, c in pairs]
    return list(torch.autograd.grad(outs, leaves, cotangents, allow_unused=True)), requires


def widen(module: torch.nn.Module) -> torch.nn.Module:
    """The module in float64, buffers too."""
    return module.double()


def doubled(tree: Any) -> Any:
    """Floats to float64, complex to complex128."""
    return pytree.tree_map(_doubled, tree)


def _doubled(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype.is_floating_point:
        return value.double()
    return value.to(torch.complex128) if value.dtype.is_complex else value


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _identical(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(((a == b) | ((a != a) & (b != b))).all()) if a.numel() else True
