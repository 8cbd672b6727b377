"""Functions that a short expression does not write: what their helpers compute, under Triton's interpreter."""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch

from kernel_lsp.synthesis.graph.functions import FUNCTIONS
from tests.synthesis import interpreted

FILE = """
import triton
import triton.language as tl

@triton.jit
def helper(a):
{body}

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, helper(tl.load(x_ptr + offsets)))
"""
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
from helper_file import kernel

x = torch.tensor(json.loads(sys.argv[2]), dtype=torch.int32).view(torch.float32)
out = torch.empty_like(x)
kernel[(1,)](x, out, BLOCK=x.numel())
print(json.dumps(out.view(torch.int32).tolist()))
"""


def computed(function: str, x: torch.Tensor, folder: Path) -> torch.Tensor:
    """Of as many float32 numbers as a power of two says."""
    body = "\n".join(f"    {line}" for line in FUNCTIONS[function].helper)
    (folder / "helper_file.py").write_text(FILE.format(body=body))
    bits = json.dumps(x.view(torch.int32).tolist())
    return torch.tensor(json.loads(interpreted.printed(PROGRAM, str(folder), bits)), dtype=torch.int32).view(
        torch.float32
    )


def test_a_number_is_rounded_to_the_nearest_of_ten_bits(tmp_path: Path) -> None:
    torch.manual_seed(0)
    some = torch.cat([torch.randn(100) * 10.0 ** torch.arange(-40, 60).clamp(-37, 37), -torch.rand(20) * 1e-39])
    step = 2.0**-10
    halfway = torch.tensor([1 + step / 2, 1 + 3 * step / 2, -1 - step / 2, 1 + step / 2 - 2.0**-23])
    known = torch.tensor([0.0, -0.0, math.inf, -math.inf])
    x = torch.cat([some, halfway, known])
    rounded = computed("to_tf32", x, tmp_path)
    unit = 2.0 ** (torch.frexp(some.double()).exponent.clamp(min=-125) - 11).double()
    expected = torch.floor(some.double().abs() / unit + 0.5) * unit * some.sign()
    assert torch.equal(rounded[: len(some)].double(), expected)
    assert rounded[len(some) : -4].tolist() == [1 + step, 1 + 2 * step, -1 - step, 1.0], "ties go away from zero"
    assert torch.equal(rounded[-4:].view(torch.int32), known.view(torch.int32))


def test_a_nan_stays_one_whatever_its_bits_are(tmp_path: Path) -> None:
    bits = torch.tensor([0x7FFFFFFF, 0x7FC00000, 0x7F800001, -1], dtype=torch.int32)
    assert computed("to_tf32", bits.view(torch.float32), tmp_path).isnan().all()
