"""Compiles generated classes with torch.compile in a process of its own: ``compiled.py FOLDER CASE...``; one JSON object a case.

Triton's interpreter cannot be traced, so without a GPU calls that run eagerly are compiled, and the envelope by itself.
"""
# ruff: noqa: E402 (the environment is set before triton is imported)

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

DEVICE = os.environ.get("KERNEL_LSP_TEST_DEVICE", "cpu")
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

import cases
import torch
from interpret import load

from kernel_lsp import why_eager


def run(name: str, folder: Path) -> dict[str, list[bool]]:
    """``eager``, ``envelope`` and ``kernel``: for each call whether the compiled one gave what the other gives."""
    torch.manual_seed(0)
    case = cases.CASES[name]
    module = case.kind(*case.init).eval()
    source = cases.made(case, module, case.inputs(0), "cases", "").source
    path = folder / f"{name}_triton.py"
    path.write_text(why_eager.added(source, case.kind.__name__))
    kernel = getattr(load(path), f"{case.kind.__name__}Triton")(*case.init).eval()
    kernel.load_state_dict(module.state_dict())
    kernel, module = kernel.to(DEVICE), module.to(DEVICE)
    whole = torch.compile(kernel, backend="eager", fullgraph=True)
    envelope = torch.compile(kernel._in_envelope, backend="eager", fullgraph=True)
    found: dict[str, list[bool]] = {"eager": [], "envelope": [], "kernel": []}
    for step in case.steps:
        inputs = [tensor.to(DEVICE) for tensor in case.inputs(step)]
        wanted = [tensor.clone().requires_grad_() for tensor in inputs]
        found["eager"].append(torch.equal(whole(*wanted), module(*wanted)))
        negated = [torch.complex(tensor, -tensor).conj().imag for tensor in inputs]
        assert all(torch.equal(*pair) and pair[0].is_neg() for pair in zip(negated, inputs, strict=True))
        with torch.no_grad():
            for given, inside in ((inputs, True), (negated, False)):
                found["envelope"].append(bool(envelope(*given)) == bool(kernel._in_envelope(*given)) == inside)
            found["eager"].append(torch.equal(whole(*negated), module(*negated)))
            if DEVICE != "cpu":
                found["kernel"].append(torch.allclose(whole(*inputs), module(*inputs), atol=1e-5))
    return found


for name in sys.argv[2:]:
    print(json.dumps(run(name, Path(sys.argv[1]))), flush=True)
