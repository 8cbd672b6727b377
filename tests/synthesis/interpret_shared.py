"""Runs a case whose rows several programs share under the interpreter, which runs one program after another.

Nobody can be waited for there. So the launch is made once more than there are exchanges, in memory that keeps what the programs stored:
each time the numbers of one exchange more are those of all programs. ``python interpret_shared.py CASE FOLDER`` prints the error, and how
many programs a row has.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import cases
import interpret
import torch

from kernel_lsp.validation.interpreter import repair

#: elements a program
PART = 4096


class Kept:
    """``torch`` for the kernel file: zeros of float32, what programs exchange, are made once."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, ...], torch.Tensor] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def zeros(self, shape: tuple[int, ...], dtype: torch.dtype, **more: Any) -> torch.Tensor:
        if dtype != torch.float32:
            return torch.zeros(shape, dtype=dtype, **more)
        return self.made.setdefault(shape, torch.zeros(shape, dtype=dtype, **more))


def run(name: str, folder: Path) -> dict[str, Any]:
    torch.manual_seed(0)
    case = cases.CASES[name]
    module = case.kind(*case.init).eval()
    arguments = case.inputs(0)
    source = cases.made(case, module, arguments, "cases", "rows shared by programs of 8192").source
    source, sizes = re.subn(r"part_held = 8192 if .*", f"part_held = {PART}", source)
    source, counts = re.subn(r"\+ 8191\) // 8192", f"+ {PART - 1}) // {PART}", source)
    source, waits = re.subn(
        r'(def _wait_for\(counter_ptr, count\):\n {4}""".*?"""\n).*?\n\n', r"\1    return\n\n", source, flags=re.S
    )
    assert (sizes, counts, waits) == (1, 1, 1), source
    path = folder / f"{name}_shared.py"
    path.write_text(source)
    loaded = interpret.load(path)
    loaded.torch = Kept()
    kernel = getattr(loaded, f"{case.kind.__name__}Triton")(*case.init).eval()
    kernel.load_state_dict(module.state_dict())
    exchanges = len(re.findall(r"_wait_for\(arrived_ptr", source))
    with torch.no_grad():
        for _ in range(exchanges + 1):
            got = kernel(*arguments)
        expected = module(*arguments)
    assert bool(kernel._in_envelope(*arguments)) and exchanges >= 1
    return {"error": interpret.error(got, expected), "parts": -(-arguments[0][0].numel() // PART)}


if __name__ == "__main__":
    repair()
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]))))
