"""Runs a case whose rows several programs share under the interpreter, which runs one program after another.

Nothing can be waited for there. So the kernel is called twice, without waiting, with the same memory for what programs tell each other: in the
second call the numbers of all blocks of a row are there. ``python -m tests.synthesis.interpret_cooperative CASE FOLDER`` prints the error, and how many blocks a
row has.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).parent))

import cases
import interpret
import torch

from kernel_lsp.validation.interpreter import repair

#: elements of a block
BLOCK = 4096


class Kept:
    """``torch`` for the kernel file: what programs tell each other is made once."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, ...], torch.Tensor] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def empty(self, shape: tuple[int, ...], **more: Any) -> torch.Tensor:
        return self.made.setdefault(shape, torch.full(shape, float("nan"), **more))


def run(name: str, folder: Path) -> dict[str, Any]:
    torch.manual_seed(0)
    case = cases.CASES[name]
    module = case.kind(*case.init).eval()
    arguments = case.inputs(0)
    source = cases.made(case, module, arguments, "cases", "rows shared by programs").source
    source, sizes = re.subn(r"block_value = \d+ if .*", f"block_value = {BLOCK}", source)
    source, counts = re.subn(r"\+ (\d+)\) // \d+", f"+ {BLOCK - 1}) // {BLOCK}", source)
    waiting = r'(def _wait_for\(counter_ptr, count\):\n {4}""".*?"""\n).*?\n\n'
    source, waits = re.subn(waiting, r"\1    return\n\n", source, flags=re.DOTALL)
    assert sizes == waits == 1 and counts, source
    path = folder / f"{name}_shared.py"
    path.write_text(source)
    loaded = interpret.load(path)
    loaded.torch = Kept()
    kernel = getattr(loaded, f"{case.kind.__name__}Triton")(*case.init).eval()
    kernel.load_state_dict(module.state_dict())
    with torch.no_grad():
        first, second = kernel(*arguments), kernel(*arguments)
        expected = module(*arguments)
    assert bool(kernel._in_envelope(*arguments))
    return {
        "without": interpret.error(first, expected),
        "error": interpret.error(second, expected),
        "blocks": -(-arguments[0][0].numel() // BLOCK),
    }


if __name__ == "__main__":
    repair()
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]))))
