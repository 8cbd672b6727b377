"""Hooks of a module's own, which run around its kernel's forward, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.own_hooks import ArgumentsReplaced


class Doubled(nn.Module):
    """Doubles its result in one hook, and adds a given number in another."""

    def __init__(self) -> None:
        super().__init__()
        self.register_forward_hook(lambda module, args, out: out * 2)
        self.register_forward_hook(lambda module, args, kwargs, out: out + kwargs["more"], with_kwargs=True)

    def forward(self, x: torch.Tensor, *, more: float = 0.0) -> torch.Tensor:
        return x.relu() + 1


def test_hooks_after_forward_are_left_out_of_the_graph() -> None:
    """The class of a kernel has them from the constructor that it inherits."""
    module, x = Doubled().eval(), torch.randn(4, 8)
    graph = capture(module, (x,), {"more": 3.0}).module()
    torch.testing.assert_close(graph(x, more=3.0), x.relu() + 1)
    torch.testing.assert_close(module(x, more=3.0), (x.relu() + 1) * 2 + 3)


class Named(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu()


def _shifted(module: nn.Module, args: Any) -> Any:
    return (args[0] + 1,)


def _shifted_by_keyword(module: nn.Module, args: Any, kwargs: Any) -> Any:
    return args, {"x": kwargs["x"] + 1}


@pytest.mark.parametrize(("hook", "how"), [(_shifted, {}), (_shifted_by_keyword, {"with_kwargs": True})])
def test_a_hook_that_replaces_arguments_is_named(hook: Callable[..., Any], how: dict[str, Any]) -> None:
    module, x = Named().eval(), torch.randn(4, 8)
    module.register_forward_pre_hook(hook, **how)
    with pytest.raises(ArgumentsReplaced, match=hook.__name__):
        capture(module, () if how else (x,), {"x": x} if how else {})


def test_hooks_that_give_the_arguments_back_are_no_obstacle() -> None:
    module = Named().eval()
    module.register_forward_pre_hook(lambda module, args: None)
    module.register_forward_pre_hook(lambda module, args: args[0].float())
    module.register_forward_pre_hook(lambda module, args: (args[0].contiguous(),))
    assert "aten.relu.default" in str(capture(module, (torch.randn(4, 8),)).graph)


class Changing(nn.Linear):
    """Counts its calls, holds its weight within 0.1, and its input at 0 or more, before forward."""

    def __init__(self) -> None:
        super().__init__(8, 8)
        self.register_buffer("calls", torch.zeros(()))
        self.register_forward_pre_hook(Changing._change)

    def _change(self, args: tuple[torch.Tensor]) -> None:
        self.calls += 1
        self.weight.clamp_(-0.1, 0.1)
        args[0].clamp_(min=0.0)


def test_hooks_change_neither_module_nor_inputs_while_forward_is_captured() -> None:
    module, x = Changing().eval(), torch.randn(4, 8)
    held, given = {name: tensor.clone() for name, tensor in module.state_dict().items()}, x.clone()
    capture(module, (x,))
    assert all(torch.equal(tensor, held[name]) for name, tensor in module.state_dict().items())
    assert torch.equal(x, given)
