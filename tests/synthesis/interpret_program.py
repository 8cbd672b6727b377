"""Runs programs of ``programs.py`` in a process of its own, where TRITON_INTERPRET is set before triton is imported.

One JSON object a line: ``{"source": text, "folder": path}`` in; out {"error", "eager"} of the worst of its candidates, each the
largest difference from float64 over the largest magnitude, {"nothing": why} where no kernel is written, or {"problem": text}.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
from interpret import error, load

from kernel_lsp.errors import UserError
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.validation.interpreter import repair

repair()
_numbers = itertools.count()


def inputs() -> list[torch.Tensor]:
    return [torch.randn(3, 4, 6), torch.randn(4, 6), torch.tensor([2, 0, 1, 1, 2]), torch.rand(4, 6) > 0.5]


def run(source: str, folder: Path) -> dict[str, Any]:
    torch.manual_seed(0)
    path = folder / f"program_{next(_numbers)}.py"
    path.write_text(source)
    sys.modules[path.stem] = file = load(path)
    module, arguments = file.Program().eval(), inputs()
    with torch.no_grad():
        eager = module(*arguments)
        exact = module(*(t.double() if t.is_floating_point() else t for t in arguments))
    try:
        candidates = synthesize(module, capture(module, tuple(arguments)), class_name="Program", import_from=path.stem)
    except UserError as nothing:
        return {"nothing": str(nothing)}
    worst = {"error": 0.0, "eager": 0.0}
    for one in candidates:
        if "CUDA graph" in one.variant:
            continue
        written = folder / f"{path.stem}_{next(_numbers)}.py"
        written.write_text(one.source)
        kernel = load(written).ProgramTriton().eval()
        with torch.no_grad():
            assert kernel._in_envelope(*arguments), "the envelope refuses the example"
            got = kernel(*copy.deepcopy(arguments))
        for a, b, wanted in zip(got, eager, exact, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            found = {"error": error(a.double(), wanted.double()), "eager": error(b.double(), wanted.double())}
            worst = max(worst, {**found, "variant": one.variant}, key=lambda one: float(one["error"]))
    return worst


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = run(request["source"], Path(request["folder"]))
        except Exception:
            answer = {"problem": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
