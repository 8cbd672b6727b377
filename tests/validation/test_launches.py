"""What is read off the kernels that were launched."""

from __future__ import annotations

from types import SimpleNamespace

from kernel_lsp.validation import launches


def test_spills_are_bytes_where_triton_counts_registers() -> None:
    target = SimpleNamespace(backend="cuda", arch=90)
    spilled = SimpleNamespace(
        metadata=SimpleNamespace(target=target, shared=1024, num_warps=4), n_regs=255, n_spills=371
    )
    unknown = SimpleNamespace(metadata=SimpleNamespace())
    found = launches.compiled(SimpleNamespace(kernels={"spilled": spilled, "unknown": unknown}))
    assert [(kernel.name, kernel.registers, kernel.spills) for kernel in found] == [
        ("spilled", 255, 1484),
        ("unknown", None, None),
    ]
