"""What a check of the envelope does in Python does not grow with the module, and each change since the last call is noticed all the same."""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from tests.envelope.test_conditions import Marked, load


class Blocks(nn.Module):
    """Convolutions without biases, norms with running statistics, and linear layers."""

    def __init__(self, count: int = 2) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1, bias=False) for _ in range(count))
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(count))
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = torch.relu(norm(conv(x)))
        y = x.mean((2, 3))
        for layer in self.layers:
            y = torch.relu(layer(y))
        return y


def calls(count: int, folder: Path) -> tuple[collections.Counter[str], int, int]:
    """The calls within a check, of functions in Python by name and of those in C; how many tensors it reads."""
    module, x = Blocks(count).eval(), torch.randn(2, 8, 5, 5)
    made = synthesize(module, capture(module, (x,)), class_name="Blocks", import_from=__name__)
    kernel = load(made[0].source, folder / f"blocks_{count}_triton.py").BlocksTriton(count).eval()
    found: collections.Counter[str] = collections.Counter()
    in_c = 0

    def noted(frame: FrameType, event: str, _: Any) -> None:
        nonlocal in_c
        if event == "call":
            found[frame.f_code.co_name] += 1
        in_c += event == "c_call"

    with torch.no_grad():
        kernel._in_envelope(x)
        sys.setprofile(noted)
        try:
            held = kernel._in_envelope(x)
        finally:
            sys.setprofile(None)
    assert len(held) == 7 * count
    return found, in_c, len(held)


def test_python_calls_no_more_functions_for_more_modules_and_tensors(tmp_path: Path) -> None:
    few, few_in_c, few_tensors = calls(2, tmp_path)
    many, many_in_c, many_tensors = calls(8, tmp_path)
    assert few == many and "__getattr__" not in few, "nn.Module's own search for a parameter takes half a microsecond"
    assert (many_in_c - few_in_c) / (many_tensors - few_tensors) <= 1, "is_contiguous alone"


def _set(name: str, made: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], None]:
    """Other data in a parameter that stays the same object."""

    def change(kernel: Any) -> None:
        parameter = kernel.get_parameter(name).requires_grad_(False)
        parameter.data = made(parameter.data)

    return change


CHANGES: dict[str, Callable[[Any], Any]] = {
    "another parameter": lambda k: setattr(k.convs[0], "weight", nn.Parameter(torch.zeros(8, 8, 3, 1))),
    "another subclass": lambda k: k.layers[0]._parameters.update(weight=torch.zeros(8, 8).as_subclass(Marked)),
    "another buffer": lambda k: setattr(k.norms[1], "running_mean", torch.zeros(9)),
    "a view at the same address": _set("convs.1.weight", lambda data: data.mT),
    "a part": _set("layers.0.bias", lambda data: data[:4]),
    "the bits of another dtype": _set("layers.1.weight", lambda data: data.view(torch.int32)),
    "another dtype": _set("norms.0.bias", torch.Tensor.half),
    "another device": lambda k: k.layers[1].to("meta"),
    "a module in half": lambda k: k.layers[1].half(),
    "a bias where none was": lambda k: setattr(k.convs[0], "bias", nn.Parameter(torch.zeros(8))),
    "a parameter less": lambda k: k.convs[0]._parameters.pop("bias"),
    "another module": lambda k: k.layers.__setitem__(1, nn.Identity()),
    "a module more": lambda k: k.layers.append(nn.Linear(8, 8)),
    "a hook": lambda k: k.layers[1].register_forward_hook(lambda *given: None),
    "a hook before": lambda k: k.convs[1].register_forward_pre_hook(lambda *given: None),
    "a hook on a list": lambda k: k.norms.register_forward_hook(lambda *given: None),
    "a forward": lambda k: setattr(k.norms[0], "forward", lambda x: x),
    "a setting": lambda k: setattr(k.convs[1], "stride", (2, 2)),
    "a number": lambda k: setattr(k.norms[1], "eps", 0.5),
    "training": lambda k: k.norms[1].train(),
}


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Any:
    module, x = Blocks().eval(), torch.randn(2, 8, 5, 5)
    made = synthesize(module, capture(module, (x,)), class_name="Blocks", import_from=__name__)
    return load(made[0].source, tmp_path_factory.mktemp("blocks") / "blocks_triton.py").BlocksTriton


@pytest.mark.parametrize("what", CHANGES)
def test_each_change_since_the_last_call_is_noticed(what: str, blocks: Any) -> None:
    kernel, x = blocks().eval(), torch.randn(2, 8, 5, 5)
    with torch.no_grad():
        assert kernel._in_envelope(x)
        CHANGES[what](kernel)
        assert kernel._in_envelope(x) is False


def test_gradients_of_one_parameter_are_noticed(blocks: Any) -> None:
    kernel, x = blocks().eval().requires_grad_(False), torch.randn(2, 8, 5, 5)
    assert kernel._in_envelope(x)
    kernel.layers[1].bias.requires_grad_()
    assert not kernel._in_envelope(x)
