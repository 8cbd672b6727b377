"""Attributes that methods only change are in no condition; those that anything reads are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.envelope.tree import configuration
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


def seen(module: Any) -> int:
    return int(module.calls)


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls, self.total, self.shapes, self.scale = 0, 0, [], 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.total = self.total + x.shape[0]
        self.shapes.append(tuple(x.shape))
        return x * self.scale


class Warming(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * min(self.calls, 10)


class ReadByName(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * getattr(self, "calls")  # noqa: B009


class HandedOn(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * seen(self)


class ByProperty(Counted):
    @property
    def warm(self) -> bool:
        return self.calls > 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) if self.warm else x


def twice(module: Any) -> int:
    return 2 * seen(module)


class HoldsAndAsks(nn.Module):
    """What reads the counter is a function that another function calls."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Counted()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * twice(self.inner)


class Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Counted()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * seen(self.inner)


def test_the_kernel_file_says_what_stays_as_it_was() -> None:
    x = torch.ones(4, 8)
    for module, said in (
        (
            Counted(),
            "self.calls, self.total, self.shapes stay as they were where the kernel runs: no method reads them.",
        ),
        (Warming(), "self.total, self.shapes stay as they were where the kernel runs: no method reads them."),
        (nn.ReLU(), ""),
    ):
        exported = capture(module.eval(), (x,))
        made = synthesize(module, exported, class_name=type(module).__name__, import_from="counters")
        docstring = made[0].source.split('"""')[1]
        lines = [line for line in docstring.splitlines() if "where the kernel runs" in line]
        assert lines == ([said] if said else [])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Counted, ["scale"]),
        (Warming, ["calls", "scale"]),
        (ReadByName, ["calls", "scale", "shapes", "total"]),
        (HandedOn, ["calls", "scale", "shapes", "total"]),
        (ByProperty, ["calls", "scale"]),
        (Holds, ["inner.calls", "inner.scale"]),
        (HoldsAndAsks, ["inner.calls", "inner.scale"]),
    ],
)
def test_conditions_are_about_what_is_read(kind, expected):
    asked = {text.split(" ")[0].removeprefix("self.") for text in configuration(kind(), exact=False)}
    assert sorted(asked) == expected
