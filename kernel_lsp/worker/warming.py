"""What a warm process does once so that its children need not: a small kernel, compiled for a GPU without touching it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _row_sum(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr, tl.sum(x, axis=0))


def compile_once(folder: str) -> None:
    """Import and set up the compiler, ptxas included. ``folder``: where the kernel is cached."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n_cols": "i32", "BLOCK": "constexpr"}
    source = ASTSource(fn=_row_sum, signature=signature, constexprs={"BLOCK": 128})
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        triton.compile(source, target=GPUTarget("cuda", 90, 32))


def launch_once(device: torch.device) -> None:
    """Compile a kernel for a GPU that is here, with the C compiler's part in it, and run it.

    Raises:
        Exception: what compiling or running it raises.
    """
    row = torch.ones(100, device=device)
    out = torch.empty(1, device=device)
    _row_sum[(1,)](row, out, 100, BLOCK=128)
    if out.item() != 100:
        raise RuntimeError("a kernel gave a wrong sum")
