"""Modules whose forward assigns plain tensor attributes, or changes them in place."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .registry import CASES, Case, r


class ElmanInAttribute(nn.Module):
    """A state in an attribute, written over in place first, then assigned anew."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.randn(5, 20)
        self.i2h = nn.Linear(12 + 20, 20)
        self.h2o = nn.Linear(20, 7)

    def forward(self, x: torch.Tensor, initial: torch.Tensor | None = None) -> torch.Tensor:
        if initial is not None:
            self.hidden.copy_(initial)
        self.hidden = self.hidden.to(x.device)
        self.hidden = torch.tanh(self.i2h(torch.cat((x, self.hidden), dim=1)))
        return self.h2o(self.hidden)


class MadeInTheFirstCall(nn.Module):
    """None at first; a submodule reads what the call before has left."""

    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state: torch.Tensor | None = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.state is None:
                self.state = torch.zeros_like(x)
            self.state = self.state * 0.5 + x
            return self.state.sum(1)

    def __init__(self) -> None:
        super().__init__()
        self.cell = self.Cell()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(torch.exp(x)) + 1


class OnlyWritten(nn.Module):
    """Attributes that are not read: the input itself, the result itself, and a copy of it."""

    def __init__(self) -> None:
        super().__init__()
        self.given = self.result = self.copied = None

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        result = torch.relu(x) * 2
        self.given, self.result, self.copied = x, result, result.clone()
        return result, result.sum(-1)


class HandedOn(nn.Module):
    """One attribute becomes what another one held."""

    def __init__(self) -> None:
        super().__init__()
        self.current, self.previous = torch.zeros(5, 12), torch.ones(5, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.previous = self.current
        self.current = self.current * 0.5 + x
        return self.current - self.previous.mean()


class ChangedInPlace(nn.Module):
    """What an attribute holds is changed where it lies, a part of it too; and one of a single number."""

    def __init__(self) -> None:
        super().__init__()
        self.average, self.count = torch.zeros(12), torch.zeros(1, dtype=torch.int64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.average.mul_(0.75).add_(x.mean(0), alpha=0.25)
        self.average[:3] = 1.0
        self.count += 1
        return x * self.average + self.count


class KeptTransposed(nn.Module):
    """What is kept lies in memory in another order each time, in half precision."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = torch.zeros(8, 8).half()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x @ x.t() + self.kept
        self.kept = torch.sigmoid(y).t().half()
        return y


class CopiedFromAttributes(nn.Module):
    """Results and attributes that are copies of what attributes and arguments held, and one filled with a number."""

    def __init__(self) -> None:
        super().__init__()
        self.current, self.previous, self.last = torch.zeros(5, 12), torch.ones(5, 12), None
        self.filled: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        before, other = self.current.clone(), self.previous
        self.previous, self.current = self.current, x + 1
        self.last, self.filled = x.clone(), torch.full_like(x, 2.0)
        return before, other, torch.exp(x)


def _add(name: str, kind: type[nn.Module], inputs: Any, **more: Any) -> None:
    CASES[name] = Case(kind, inputs, **more)


_add("elman_in_attribute", ElmanInAttribute, lambda n: [r(5, 12), r(5, 20)])
_add("made_in_the_first_call", MadeInTheFirstCall, lambda n: [r(5, 12)], settled=True)
_add("only_written", OnlyWritten, lambda n: [r(5 + n, 12)])
_add("handed_on", HandedOn, lambda n: [r(5, 12)])
_add("copied_from_attributes", CopiedFromAttributes, lambda n: [r(5, 12)])
_add("changed_in_place", ChangedInPlace, lambda n: [r(5 + n, 12)])
_add("kept_transposed", KeptTransposed, lambda n: [r(8, 8)], tolerance=2e-3)
