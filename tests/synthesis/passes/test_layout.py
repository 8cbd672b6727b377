"""Convolutions that are multiplied in TF32: which numbers their kernels multiply, under Triton's interpreter, which adds up in float32."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from tests.synthesis import interpreted
from tests.synthesis.cases.float16_convolutions import Residual

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from kernel_lsp.validation import interpreter
from tests.synthesis.passes import test_layout

interpreter.repair()
name = sys.argv[2]
torch.manual_seed(0)
module, shape = getattr(test_layout, name)().eval(), test_layout.SHAPES[name]
kernel = getattr(__import__("made_triton"), name + "Triton")().eval()
kernel.load_state_dict(module.state_dict())
x = torch.randn(shape)
with torch.no_grad():
    assert kernel._in_envelope(x) is not False
    print(*test_layout.errors(module, x, kernel(x)))
"""


class Parts(nn.Module):
    """So few tiles that the channels are summed in parts."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(128, 96, 3, padding=1), nn.Conv2d(96, 128, (3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


SHAPES = {"Residual": (2, 16, 5, 6), "Parts": (1, 128, 5, 6)}


def nearest(x: torch.Tensor) -> torch.Tensor:
    """The nearest number of TF32, in float64."""
    return ((x.float().view(torch.int32) + 4096) & -8192).view(torch.float32).double()


def errors(module: nn.Module, x: torch.Tensor, out: torch.Tensor) -> tuple[float, float]:
    """How far ``out`` is from the module with the operands of its convolutions rounded to the nearest, and from the module; over the largest."""
    plain = module.double()(x.double())
    hooks = []
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            part.weight.copy_(nearest(part.weight))
            hooks.append(part.register_forward_pre_hook(lambda _, given: (nearest(given[0]),)))
    rounded = module(x.double())
    scale = plain.abs().max()
    return float((out - rounded).abs().max() / scale), float((out - plain).abs().max() / scale)


@pytest.mark.parametrize("kind", [Residual, Parts])
def test_operands_of_several_convolutions_are_the_nearest_of_tf32(kind: type[nn.Module], tmp_path: Path) -> None:
    module = kind().eval()
    exported = capture(module, (torch.randn(SHAPES[kind.__name__]),))
    found = synthesize(module, exported, class_name=kind.__name__, import_from=__name__, gpu="H100")
    made = next(one for one in found if one.arithmetic == "TF32 convolutions")
    assert "_to_tf32(" in made.source and ("parts = " in made.source) == (kind is Parts)
    (tmp_path / "made_triton.py").write_text(made.source)
    from_rounded, from_plain = map(float, interpreted.printed(PROGRAM, str(tmp_path), kind.__name__).split())
    assert from_rounded < 2e-6 and from_plain > 1e-5
