"""docs/generated.md: three generated files of the hardest kind, as the tests of the synthesizer hold them."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

from kernel_lsp.jobs.formatting import format_source

_TESTS = Path(__file__).resolve().parent.parent / "tests" / "synthesis"

_HEAD = """\
# Three generated files

<!-- Written by `make docs` from tests/synthesis/golden/. -->

What the rules write, as the synthesizer's tests hold it, for small sizes. A file in a project begins with a header besides, which says
what was found out about it, and ends with `why_not`. [synthesizer.md](synthesizer.md) says how a file comes about.
"""

#: heading, name in golden/, file of the case and its class (None: a module of torch), what to look at
_FILES = [
    (
        "A transposed convolution with what follows",
        "transposed_tail",
        ("convolution.py", "TransposedTail"),
        "A transposed convolution with a stride is several dense ones, one for each phase of the result. Its "
        "kernel also computes the scale, GELU and the sum. Rows and columns that only some phases have are computed by all, and masked in the store.",
    ),
    (
        "A block of a CNN",
        "conv_norm_act_pool",
        ("convolution.py", "ConvNormAct"),
        "The convolution is a matrix product whose operand is read by index: `ks` counts the input channels and the taps of the "
        "filter, `cols` the pixels of all images. Batch norm, SiLU and the residual are computed on the tile. "
        "The pool is computed there, too: each 4 columns of a tile are one window.",
    ),
    (
        "An LSTM",
        "lstm",
        None,
        "`nn.LSTM(6, 20)`. One product serves the inputs of all steps. A second kernel then goes through the steps; each program takes some of "
        "the batch and keeps the recurrent weight on chip, as two float16 planes of it: it is split once, and multiplied at the rate of float16.",
    ),
]


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for heading, name, case, about in _FILES:
        text = (_TESTS / "golden" / f"{name}.txt").read_text()
        parts += [f"## {heading}\n", f"{about}\n"]
        if case is not None:
            parts.append(f"```python\n{_class(*case)}\n```\n")
        parts.append(f"```python\n{asyncio.run(format_source(text)).strip()}\n```\n")
    return "\n".join(parts)


def _class(file: str, name: str) -> str:
    source = (_TESTS / "cases" / file).read_text()
    found = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name)
    return str(ast.get_source_segment(source, found))
