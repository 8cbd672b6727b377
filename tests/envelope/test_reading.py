"""What a module finds in its class, behind properties or through functions that it calls is a setting like what it holds itself."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kernel_lsp.envelope.tree import configuration


def halved(module: Any, x: torch.Tensor) -> torch.Tensor:
    return x / module._half


def widened(x: torch.Tensor, config: Any) -> torch.Tensor:
    return x * config.width


class Gate(nn.Module):
    slope = 0.1
    _bound = 6.0

    def __init__(self) -> None:
        super().__init__()
        self._half = 2.0

    def bounded(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=self._bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, self.slope)


class Attention(nn.Module):
    """Nothing here but ``config`` and the names with an underscore is set by the constructor."""

    softcap: float | None = 50.0
    activation = staticmethod(torch.tanh)
    unused = 3.0
    table = tuple(range(1000))

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.config = SimpleNamespace(heads=2, width=1.5, depth=4)
        self._scale, self._offset = 2.0, 0.5

    @property
    def scale(self) -> float:
        return self._scale * self.config.heads

    @classmethod
    def first(cls) -> int:
        return cls.table[0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gate.bounded(self.gate(x)) * self.scale + self.first()
        if self.softcap is not None:
            x = self.activation(x / self.softcap) * getattr(self, "softcap")  # noqa: B009
        return widened(halved(self.gate, x), self.config) + self.gate.slope if hasattr(self.gate, "sharpness") else x


class Counting(nn.Module):
    calls, scale = 0, 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.scale


class Capped(Attention):
    softcap = 30.0


def _all_hold(conditions: list[str], module: nn.Module) -> bool:
    return all(eval(text, {"torch": torch, "self": module}) for text in conditions)


@pytest.fixture(scope="module")
def conditions() -> list[str]:
    return configuration(Attention(), exact=False)


CHANGES: dict[str, Callable[[Any], None]] = {
    "a number of the class": lambda m: setattr(m, "softcap", 20.0),
    "None in place of it": lambda m: setattr(m, "softcap", None),
    "a function of the class": lambda m: setattr(m, "activation", torch.sigmoid),
    "a long table of the class": lambda m: setattr(m, "table", (1, 2)),
    "a number of a child's class": lambda m: setattr(m.gate, "slope", 0.2),
    "a number in a method of a child": lambda m: setattr(m.gate, "_bound", 1.0),
    "a number behind a property": lambda m: setattr(m, "_scale", 3.0),
    "a number that a function reads": lambda m: setattr(m.gate, "_half", 4.0),
    "an object's behind a property": lambda m: setattr(m.config, "heads", 3),
    "an object's that is given to a function": lambda m: setattr(m.config, "width", 2.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_value_of_what_a_call_reads_is_outside(change: str, conditions: list[str]) -> None:
    module = Attention()
    assert _all_hold(conditions, module)
    CHANGES[change](module)
    assert not _all_hold(conditions, module)


def test_a_subclass_with_a_value_of_its_own_is_outside(conditions: list[str]) -> None:
    assert not _all_hold(conditions, Capped())
    assert _all_hold(configuration(Capped(), exact=False), Capped())


def test_what_no_call_reads_is_in_no_condition(conditions: list[str]) -> None:
    words = {node.attr for text in conditions for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    assert not words & {"unused", "depth", "_offset"}


def test_what_a_class_begins_to_count_from_is_in_no_condition() -> None:
    module = Counting()
    conditions = configuration(module, exact=False)
    module(torch.randn(2, 3))
    assert module.calls == 1 and _all_hold(conditions, module)
    module.scale = 3.0
    assert not _all_hold(conditions, module)
