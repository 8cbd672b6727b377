"""Modules that return dataclasses."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, fields

import torch
from torch import nn

from .registry import CASES, Case, r


@dataclass
class Output:
    logits: torch.Tensor
    hidden: torch.Tensor | None = None
    kind: str = "plain"


@dataclass(frozen=True, kw_only=True)
class Whole:
    output: Output
    states: tuple[torch.Tensor, ...]
    temperature: float


class ModelOutput(OrderedDict[str, object]):
    """As transformers' class of this name: its entries are the fields that are not None."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            if getattr(self, one.name) is not None:
                self[one.name] = getattr(self, one.name)


@dataclass
class EncoderOutput(ModelOutput):
    last_hidden_state: torch.Tensor | None = None
    pooled: torch.Tensor | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


class ReturnsDataclass(nn.Module):
    def forward(self, x: torch.Tensor) -> Output:
        return Output(torch.softmax(x, -1))


class ReturnsNestedDataclass(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, object]:
        y = torch.exp(x)
        return {"whole": Whole(output=Output(y, x.sum(-1), "sum"), states=(y + 1, y - 1), temperature=0.7), "count": 2}


class ReturnsModelOutput(nn.Module):
    def forward(self, x: torch.Tensor) -> EncoderOutput:
        y = torch.sigmoid(x) * x
        return EncoderOutput(y, pooled=y.mean(-1))


def _add(name: str, kind: type[nn.Module]) -> None:
    CASES[name] = Case(kind, lambda n: [r(5 + n, 24)], kernels=1)


_add("returns_dataclass", ReturnsDataclass)
_add("returns_nested_dataclass", ReturnsNestedDataclass)
_add("returns_model_output", ReturnsModelOutput)
