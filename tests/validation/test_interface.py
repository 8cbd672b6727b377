from __future__ import annotations

import torch
from torch import nn

from kernel_lsp.validation import interface


def test_arguments_by_name_and_by_place() -> None:
    class Module(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
            return x

    def kernel(forward: object) -> type:
        return type("Kernel", (Module,), {"forward": forward})

    assert interface.difference(kernel(lambda self, *args, **kwargs: 0), Module) == ""
    assert interface.difference(kernel(lambda self, x, mask=None, more=1: 0), Module) == ""
    assert "no argument 'mask'" in interface.difference(kernel(lambda self, x: 0), Module)
    assert "no argument 'x'" in interface.difference(kernel(lambda self, *args: 0), Module)
    assert "at another place" in interface.difference(kernel(lambda self, mask=None, x=None: 0), Module)
    assert "by its place" in interface.difference(kernel(lambda self, **kwargs: 0), Module)
