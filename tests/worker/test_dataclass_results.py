"""A module that returns a dataclass, or an output of transformers' kind, gets a kernel that returns the same type with the same fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.worker.worker_client import Client, WorkerError

#: As transformers' ModelOutput is: keys are the fields that are not None, and attributes and keys are kept equal.
MODEL_OUTPUT = """
from collections import OrderedDict
from dataclasses import dataclass, field, fields
import torch

class ModelOutput(OrderedDict):
    def __init_subclass__(cls):
        torch.utils._pytree.register_pytree_node(
            cls, lambda one: (list(one.values()), list(one.keys())), lambda values, keys: cls(**dict(zip(keys, values)))
        )
    def __post_init__(self):
        for one in fields(self):
            if getattr(self, one.name) is not None:
                self[one.name] = getattr(self, one.name)
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)
    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)
    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else tuple(self.values())[key]

@dataclass
class BaseOutput(ModelOutput):
    last: torch.Tensor = None
    hidden: tuple = None
    attentions: tuple = None

@dataclass
class OutputWithLoss(BaseOutput):
    loss: torch.Tensor = None
"""
SOURCE = """
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "site-packages"))
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple
import torch
from torch import nn
import elsewhere
from elsewhere import Renamed as Another
from installed_outputs import BaseOutput, OutputWithLoss

@dataclass
class Output:
    logits: torch.Tensor
    hidden: Any = None
    kind: str = "plain"
    count: int = 0
    scale: float = 1.5

@dataclass(frozen=True, kw_only=True, slots=True)
class Frozen:
    value: torch.Tensor
    inner: Output
    flag: bool = True

class Pair(NamedTuple):
    left: Any
    right: Any

@dataclass
class Checked:
    value: torch.Tensor
    steps: list = field(init=False, default_factory=list)
    width: int = field(init=False, default=7)
    def __post_init__(self):
        assert self.value.dim() == 2
        self.value = self.value.float()
        self.label = "checked"

@dataclass
class Halved:
    value: torch.Tensor
    half: torch.Tensor = field(init=False)
    def __post_init__(self):
        self.half = self.value / 2

@dataclass
class Scaled:
    value: torch.Tensor
    by: InitVar[int]
    def __post_init__(self, by):
        self.value = self.value * by

@dataclass(init=False)
class OwnInit:
    value: torch.Tensor
    def __init__(self, tensor):
        self.value = tensor

class Plain(nn.Module):
    def forward(self, x):
        return Output(x * 2 + 1, None, "plain", x.dim())

class Fields(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind = "set"
    def forward(self, x):
        return Output(x * 2, x.sum(-1), self.kind, scale=float("inf"))

class Nested(nn.Module):
    def forward(self, x):
        y = Output(x + 1, [x * 3])
        return {"a": (Frozen(value=x.exp(), inner=y), 2), "b": Pair(y, [Output(x - 1, hidden=Output(x * 5))])}

class OfAnotherModule(nn.Module):
    def forward(self, x):
        return elsewhere.Result(x * 2), Another(x + 1), elsewhere.Output(x - 1), Output(x * 4)

class WithPostInit(nn.Module):
    def forward(self, x):
        return Checked(x * 2)

class Base(nn.Module):
    def forward(self, x):
        y = x * 2
        return BaseOutput(last=y + 1, hidden=(y, x.tanh()))

class WithLoss(nn.Module):
    def forward(self, x):
        return OutputWithLoss(x.tanh(), loss=x.mean())

class Assigns(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(24))
        self.last = torch.zeros(6, 24)
    def forward(self, x):
        self.total += x.sum(0)
        y = x + self.last
        self.last = y.tanh()
        return Output(y * 2, self.last)

class MadeByPostInit(nn.Module):
    def forward(self, x):
        return Halved(x * 2)

class WithInitVar(nn.Module):
    def forward(self, x):
        return Scaled(x, 2)

class WithOwnInit(nn.Module):
    def forward(self, x):
        return OwnInit(x * 2)

class SetLater(nn.Module):
    def forward(self, x):
        result = Output(x * 2)
        result.more = x + 1
        return result

class KeyAdded(nn.Module):
    def forward(self, x):
        result = BaseOutput(x * 2)
        result["more"] = x + 1
        return result

class Local(nn.Module):
    def forward(self, x):
        @dataclass
        class Inside:
            value: torch.Tensor
        return Inside(x * 2)

class NotImported(nn.Module):
    def forward(self, x):
        return elsewhere.made(x * 2)

class NoDataclass(nn.Module):
    def forward(self, x):
        return Ordinary(x * 2)

class Ordinary:
    def __init__(self, value):
        self.value = value

def get_inputs(): return [torch.randn(6, 24)]
"""
ELSEWHERE = """
from dataclasses import dataclass
import torch
import further
@dataclass
class Result:
    value: torch.Tensor
@dataclass
class Renamed:
    value: torch.Tensor
@dataclass
class Output:
    value: torch.Tensor
def made(x):
    return further.Far(x)
"""
FURTHER = """
from dataclasses import dataclass
import torch
@dataclass
class Far:
    value: torch.Tensor
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("returned")
    (folder / "site-packages").mkdir()
    for name, text in [
        ("site-packages/installed_outputs.py", MODEL_OUTPUT),
        ("elsewhere.py", ELSEWHERE),
        ("further.py", FURTHER),
        ("returned.py", SOURCE),
    ]:
        (folder / name).write_text(text)
    return folder / "returned.py"


def about(path: Path, class_name: str) -> dict[str, Any]:
    return {"path": str(path), "class_name": class_name, "device": "interpreter", "seconds": 60}


RIGHT = {
    "Plain": ["_Output(logits=out, kind='plain', count=2, scale=1.5)"],
    "Fields": ["kind='set'", 'scale=float("inf")', "self.kind == 'set'"],
    "Nested": ["_Frozen(value=", "inner=_Output(", "_Pair(_Output(", "hidden=_Output("],
    "OfAnotherModule": ["].elsewhere.Result", "].Another", "_Output_2"],
    "WithPostInit": ["_Checked(value="],
    "Base": ["from installed_outputs import BaseOutput as _BaseOutput", "_BaseOutput(last=", "hidden=("],
    "WithLoss": ["_OutputWithLoss(last=", "loss="],
    "Assigns": ["result, self.last = "],
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_kernel_returns_the_type(worker: Client, path: Path, name: str) -> None:
    source = worker.call("synthesize", **about(path, name))["candidates"][0]["source"]
    for text in RIGHT[name]:
        assert text in source
    found = worker.call("validate", source=source, measure="none", **about(path, name))["verdict"]
    assert (found["status"], found["reason"]) == ("ok", "")


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "MadeByPostInit",
            "NotExportable",
            "cannot be made from its fields (Halved: its constructor does not set half to what forward returns there)",
        ),
        ("WithInitVar", "NotExportable", "cannot be made from its fields (Scaled: its constructor raises TypeError)"),
        ("WithOwnInit", "NotExportable", "cannot be made from its fields (OwnInit: its constructor raises TypeError)"),
        ("SetLater", "NotExportable", "does not set more to what forward returns there). Set its fields by its"),
        ("KeyAdded", "NotExportable", "(BaseOutput: its constructor does not set more to what forward returns there)"),
        ("Local", "NotWritable", "the result is of the class Inside, which is not at the top of the module"),
        ("NotImported", "NotWritable", "of the class Far, which is not at the top of the module; import it there"),
        ("NoDataclass", "OutputsNotTensors", "returned Ordinary; kernel-lsp needs tensors, and beside them takes"),
    ],
)
def test_what_is_said_of_other_results(worker: Client, path: Path, name: str, code: str, said: str) -> None:
    with pytest.raises(WorkerError) as caught:
        worker.call("synthesize", **about(path, name))
    assert caught.value.code == code and said in caught.value.message
