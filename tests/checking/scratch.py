"""A git repository with modules and kernel files, made in a moment: the kernels are written here, not generated."""

from __future__ import annotations

from pathlib import Path

from kernel_lsp import kernel_file
from kernel_lsp.analysis import fingerprint

MODULE = """
import torch
{imports}

class {name}(torch.nn.Module):
    def forward(self, x):
        return {formula}


def get_inputs():
    return [torch.randn(4, 8)]
"""

KERNEL = """
import torch
import triton
import triton.language as tl

from {module} import {name}


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * {factor}, mask=offsets < n)


class {name}Triton({name}):
    def forward(self, x):
        if x.requires_grad or x.dtype != torch.float32 or x.numel() == 0 or torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        x = x.contiguous()
        out = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
"""


def write_module(path: Path, name: str, formula: str, imports: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MODULE.format(name=name, formula=formula, imports=imports))


def write_kernel(source: Path, name: str, factor: str = "0.5") -> Path:
    """The kernel file of a class, in ``kernels/`` beside its source, with the fingerprint of now."""
    kernel = kernel_file.find_kernel(source, name)
    kernel.parent.mkdir(parents=True, exist_ok=True)
    header = {
        "source": f"{source.name}::{name}",
        "class": name,
        "fingerprint": fingerprint(source.read_text(), source, name),
    }
    body = KERNEL.format(module=source.stem, name=name, factor=factor)
    kernel.write_text(kernel_file.assemble(header, body))
    return kernel
