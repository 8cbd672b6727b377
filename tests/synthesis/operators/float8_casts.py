"""Runs casts to and from float8 in a process of its own, under Triton's interpreter or on a GPU.

Prints a JSON object: what was cast to what → the numbers of which a kernel made something else than torch (``number``: [torch's,
the kernel's]).
"""
# ruff: noqa: E402 (the environment is set before triton is imported)

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path

DEVICE = os.environ.get("KERNEL_LSP_TEST_DEVICE", "cpu")
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture

if DEVICE == "cpu":
    from kernel_lsp.validation.interpreter import repair

    repair()

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
OTHERS = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64, torch.bool)


class Cast(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.dtype)


def every(dtype: torch.dtype) -> torch.Tensor:
    """The numbers of all 256 bit patterns."""
    return torch.arange(256).to(torch.uint8).view(dtype)


def decisive(dtype: torch.dtype) -> torch.Tensor:
    """float32 numbers at which rounding to ``dtype`` is decided.

    Every number of it, what lies halfway between two, what is beyond the largest one, and the neighbours of these in float32.
    """
    numbers = every(dtype).float()
    numbers = numbers[numbers.isfinite()].unique()
    halfway = (numbers[1:] + numbers[:-1]) / 2
    beyond = torch.tensor([1.03, 15 / 14, 29 / 28, 1.125, 8 / 7, 2.0, 1e30]) * numbers.max()
    special = torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0, 1e-30])
    exact = torch.cat([numbers, halfway, beyond, -beyond, special])
    near = [torch.nextafter(exact, torch.full_like(exact, to)) for to in (float("inf"), float("-inf"))]
    return torch.cat([exact, *near])


def differences(x: torch.Tensor, dtype: torch.dtype, folder: Path) -> dict[str, list[float]]:
    module = Cast(dtype).eval()
    source = synthesize(module, capture(module, (x,)), class_name="Cast", import_from="float8_casts")[0].source
    path = folder / f"cast_{len(list(folder.iterdir()))}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    file = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(file)
    kernel = file.CastTriton(dtype).eval()
    x = x.to(DEVICE)
    assert kernel._in_envelope(x)
    wanted, got = module(x).double().cpu(), kernel(x).double().cpu()
    other = ~((wanted == got) & (wanted.signbit() == got.signbit()) | wanted.isnan() & got.isnan())
    numbers = x.double().cpu()[other].tolist()
    return {f"{n!r}": [a, b] for n, a, b in zip(numbers, wanted[other].tolist(), got[other].tolist(), strict=True)}


def main() -> None:
    sys.modules["float8_casts"] = sys.modules["__main__"]
    found = {}
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        for dtype in FLOAT8:
            for other in OTHERS:
                # An integer of what is no number is whatever the processor makes of it.
                numbers = every(dtype)
                given = numbers if other.is_floating_point else numbers[numbers.float().isfinite()]
                found[f"{dtype} to {other}"] = differences(given, other, Path(folder))
                rounded = decisive(dtype)
                rounded = rounded if other.is_floating_point else rounded[rounded.abs() < 1e6]
                found[f"{other} to {dtype}"] = differences(rounded.to(other), dtype, Path(folder))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
