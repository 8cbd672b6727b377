"""Modules that a class makes: what they hold can be copied."""

from __future__ import annotations

import copy

import torch

from kernel_lsp.specimen import building, examples


@torch.jit.script
def halved(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5


class Scripted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act, self.acts = halved, [halved]
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.acts[0](self.act(self.layer(x)))


def test_a_copy_has_the_scripted_functions_of_the_module() -> None:
    made = building.construct(Scripted, examples.Example((), {}, (torch.randn(2, 3),), {}), "scripted.py", "Scripted")
    copied = copy.deepcopy(made).double()
    x = torch.randn(2, 3)
    torch.testing.assert_close(copied(x.double()).float(), made(x))
    assert copied.act is halved and copied.layer is not made.layer
