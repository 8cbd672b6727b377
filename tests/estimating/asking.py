"""Modules looked at with tensors that take no memory, for tests of what they are estimated to take."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from kernel_lsp import class_schema
from kernel_lsp.estimating.estimate import estimate
from kernel_lsp.estimating.operators import Eager, eager
from kernel_lsp.specimen import faking
from kernel_lsp.synthesis.capture import capture


def exported(module: Any, *shapes: Any, dtype: torch.dtype = torch.float32) -> ExportedProgram:
    """``module()`` with arguments of these shapes, exported; nothing of it is in memory. A tensor stands for itself."""
    mode = faking.mode()
    with faking.within(mode):
        made = module().eval().to(dtype)
        inputs = tuple(one if isinstance(one, torch.Tensor) else torch.randn(*one, dtype=dtype) for one in shapes)
    return capture(made, inputs, {})


def run(module: Any, *shapes: Any, dtype: torch.dtype = torch.float32) -> Eager:
    return eager(exported(module, *shapes, dtype=dtype))


def estimated(
    module: Any, *shapes: Any, gpu: str = "H100", dtype: torch.dtype = torch.float32
) -> class_schema.Estimate:
    return estimate(exported(module, *shapes, dtype=dtype), class_name="Model", gpu=gpu)
