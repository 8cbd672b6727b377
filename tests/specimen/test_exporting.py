"""What is said of a module that torch.export does not take, whatever torch itself says in this version."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from kernel_lsp import errors
from kernel_lsp.specimen import exporting
from kernel_lsp.specimen.examples import Example


class Output(OrderedDict):  # type: ignore[type-arg]
    """As libraries of models write it: attributes and keys."""


class ReturnsOutput(nn.Module):
    def forward(self, x: torch.Tensor) -> Output:
        return Output(logits=x * 2)


def test_an_object_of_a_class_of_its_own_is_named() -> None:
    found = exporting.export(
        ReturnsOutput(), Example(args=(torch.randn(3),)), __file__, "ReturnsOutput", ran=True, training=False
    )
    assert isinstance(found, errors.NotExportable)
    assert str(found.values["detail"]).startswith("it returns an object that is no tensor") and "(Output)" in str(found)


class HoldsScripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(torch.jit.script(nn.Linear(3, 3)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x))


def test_a_scripted_module_is_named() -> None:
    example = Example(args=(torch.randn(2, 3),))
    found = exporting.export(HoldsScripted(), example, __file__, "HoldsScripted", ran=True, training=False)
    assert isinstance(found, errors.NotExportable)
    assert str(found.values["detail"]).startswith("self.body.0 was made by torch.jit")
    assert "SpecViolation" not in str(found) and "Leave torch.jit out" in str(found)
