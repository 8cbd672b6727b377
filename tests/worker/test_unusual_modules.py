"""Modules at the edges: the rule-based kernel is right for them, or what is said is about the module, not about torch.export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.worker.worker_client import Client, WorkerError

FUNCTIONS = {
    "Largest": "x.amax(-1)",
    "Smallest": "x.amin(0)",
    "LargestAndWhere": "tuple(torch.max(x, -1))",
    "Where": "x.argmin(0)",
    "OfAll": "x.max()",
    "LargestNorm": 'x.norm(float("inf"), -1)',
    "LogSumExp": "torch.logsumexp(x, -1)",
    "Sign": "torch.sign(x)",
    "MeanOfNorm": "F.layer_norm(x, (x.shape[-1],)).mean(-1)",
    "AllTrue": "x > -1e30",
    "Mixed": '(x * 2, 3, None, "s", {"a": 1.5})',
    "Divergence": 'F.kl_div(F.log_softmax(x, -1), F.softmax(x.flip(0), -1), reduction="batchmean")',
    "SliceAssigned": "assigned(x * 2, x)",
    "Circular": 'F.pad(x[None], (2, 2), mode="circular") * 2',
}
SOURCE = """
import random
from typing import NamedTuple
import torch
import torch.nn.functional as F
from torch import nn

def assigned(y, x):
    y[:, 1:3] = x[:, :2]
    return y

class MeanOfTransposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.shift = nn.ConvTranspose2d(4, 8, 3, 2, 1, 1), nn.Parameter(torch.randn(8, 1, 1))

    def forward(self, x):
        return torch.logsumexp((self.convolution(x) * 0.5).mean((2, 3), keepdim=True) + self.shift, 1)

class PooledConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x):
        return torch.sigmoid(F.avg_pool2d(self.norm(self.convolution(x)), 4)).sum((1, 2, 3))

class TransposedWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(40, 8).t())
    def forward(self, x):
        return F.relu(x * self.weight)

class ChannelsLastWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 6, 5, 5).contiguous(memory_format=torch.channels_last))
    def forward(self, x):
        return x * self.weight
def get_inputs_ChannelsLastWeight(): return [torch.randn(4, 6, 5, 5)]

class CatThenConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 4, 3)
    def forward(self, a, b):
        return torch.relu(self.conv(torch.cat([a, b], 1)))
def get_inputs_CatThenConv(): return [torch.randn(2, 6, 8, 9), torch.randn(2, 6, 8, 9)]

class Float8Buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.rand(40).to(torch.float8_e4m3fn))
    def forward(self, x):
        return x * self.scale.to(torch.float32)

class Complex(nn.Module):
    def forward(self, x):
        return torch.view_as_real(torch.view_as_complex(x.reshape(4, -1, 2)) * (1 + 1j)).flatten(1)

class ComplexBuffer(nn.Module):
    # module.to(torch.float64) would drop the imaginary parts of its buffer
    def __init__(self):
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(40), torch.arange(40.0)))
    def forward(self, x):
        return torch.view_as_real(torch.view_as_complex(x.reshape(4, -1, 2)) * self.turns).flatten(1)

class Conjugated(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("turns", torch.randn(40, dtype=torch.cfloat).conj())
    def forward(self, x):
        return (x * self.turns).real

class OnTheData(nn.Module):
    def forward(self, x):
        y = x * 2
        if y.sum() > 0:
            return y
        return x

class Draws(nn.Module):
    def forward(self, x):
        return x * random.random()

class OwnGenerator(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = random.Random(3)
    def forward(self, x):
        return x * self.generator.random()

class OneMemory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(40))
        self.register_buffer("also", self.seen)
    def forward(self, x):
        self.seen.add_(x.sum(0))
        return x + self.also

class Differentiates(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            return torch.autograd.grad(torch.tanh(y).sum(), y)[0]

class ChangesParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(40))
    def forward(self, x):
        with torch.no_grad():
            self.weight.mul_(0.5)
        return x * self.weight

class Branches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))

class Switches(nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x.t()

class SwitchesOff(nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            y = torch.tanh(x)
        with torch.enable_grad():
            return y * 2

class SpectralNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.utils.parametrizations.spectral_norm(nn.Linear(40, 8))
    def forward(self, x):
        return self.layer(x)

class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16)
    def forward(self, i):
        return self.table(i) * 2
def get_inputs_Table(): return [torch.randint(0, 50, (7,))]

class DoubledAndSkip(nn.Module):
    def forward(self, x, skip):
        return torch.relu(F.interpolate(x, scale_factor=2) + skip)
def get_inputs_MeanOfTransposed(): return [torch.randn(2, 4, 9, 8)]
def get_inputs_PooledConvolution(): return [torch.randn(2, 4, 14, 19)]
def get_inputs_DoubledAndSkip(): return [torch.randn(1, 4, 8, 8), torch.randn(1, 4, 16, 16)]

class Pair(NamedTuple):
    total: torch.Tensor
    each: torch.Tensor

class NamedResult(nn.Module):
    def forward(self, x):
        y = torch.tanh(x) * 2
        return {"pair": Pair(y.sum(-1), y), "first": y[0]}

class OfTorch(nn.Module):
    def forward(self, x):
        y = torch.tanh(x) * 2
        return {"top": torch.topk(y, 3, dim=-1), "largest": torch.max(y + 1, dim=0)}

class NamedInside(nn.Module):
    def forward(self, x):
        class Inside(NamedTuple):
            doubled: torch.Tensor
        return Inside(x * 2)

def get_inputs(): return [torch.randn(8, 40)]
""" + "".join(
    f"\nclass {name}(nn.Module):\n    def forward(self, x):\n        return {text}\n"
    for name, text in FUNCTIONS.items()
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("unusual") / "unusual.py"
    file.write_text(SOURCE)
    return file


def verdict(worker: Client, path: Path, class_name: str) -> dict[str, Any]:
    about = {"path": str(path), "class_name": class_name, "device": "interpreter", "seconds": 60}
    source = worker.call("synthesize", **about)["candidates"][0]["source"]
    return worker.call("validate", source=source, measure="none", **about)["verdict"]


NAMES = [
    *FUNCTIONS,
    "TransposedWeight",
    "ChannelsLastWeight",
    "CatThenConv",
    "Float8Buffer",
    "Table",
    "SwitchesOff",
    "SpectralNorm",
    "NamedResult",
    "OfTorch",
    "DoubledAndSkip",
    "MeanOfTransposed",
    "PooledConvolution",
    "Complex",
    "ComplexBuffer",
]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if i % 8 else []) for i, name in enumerate(NAMES)]
)
def test_the_kernel_by_rule_is_right(worker: Client, path: Path, name: str) -> None:
    found = verdict(worker, path, name)
    assert (found["status"], found["reason"]) == ("ok", "")
    if name == "Table":
        assert any("indices out of range" in limit for limit in found["limits"])
    if name == "LargestAndWhere":
        assert {"NaN among the inputs", "infinities among the inputs"} <= {check["name"] for check in found["checks"]}


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (
            "OnTheData",
            "NotExportable",
            "depends on values in the tensors, not on their sizes alone (`if y.sum() > 0:`)",
        ),
        (
            "OneMemory",
            "NotExportable",
            "it changes a buffer that lies in the same memory as another buffer or parameter",
        ),
        (
            "Differentiates",
            "NotExportable",
            "as the gradients of torch.autograd.grad and torch.func.grad are. Generate kernels for the",
        ),
        (
            "Conjugated",
            "NothingToLower",
            "the elements of self.turns are conjugated as they are read, register its res",
        ),
        ("ChangesParameter", "NothingToLower", "forward changes self.weight (`self.weight.mul_(0.5)`, line "),
        ("Branches", "NothingToLower", "torch.cond: what it runs is decided by values in the tensors"),
        ("Switches", "NothingToLower", "autocast: forward switches it on, and which tensors it rounds depends on the"),
        ("NamedInside", "NotWritable", "the result is of the class Inside, which is not at the top of the module"),
        ("Draws", "RandomNotComparable", "Draws.forward draws random numbers"),
        ("OwnGenerator", "RandomNotComparable", "OwnGenerator.forward draws random numbers"),
    ],
)
def test_what_is_said_is_about_the_module(worker: Client, path: Path, name: str, code: str, said: str) -> None:
    with pytest.raises(WorkerError) as caught:
        verdict(worker, path, name)
    assert caught.value.code == code and said in caught.value.message
    assert not any(
        word in caught.value.message for word in ("u0", "Symint", "guard", "Guard", "file an issue", "submod")
    )
