"""Functions of a generated file that its kernels call: ``@triton.jit`` functions of two elements or tiles."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.functions import FUNCTIONS
from ..graph.monoids import MONOIDS
from ..kernel.ir import Apply, PrefixScan
from ..schedule.program import Program, expressions


def name(function: str) -> str:
    """What the helper for ``function``, a key of ``FUNCTIONS``, is called."""
    return f"_{function}"


def definitions(programs: Iterable[Program]) -> list[str]:
    """The helpers that the programs call, each once, in the order of their first use."""
    needed: dict[str, None] = {}
    for program in programs:
        for expr in expressions(program.body):
            if isinstance(expr, PrefixScan) and not MONOIDS[expr.kind].scan:
                needed[MONOIDS[expr.kind].combine] = None
            elif isinstance(expr, Apply) and FUNCTIONS[expr.function].helper:
                needed[expr.function] = None
    return [_definition(function) for function in needed]


def _definition(function: str) -> str:
    """The helper of two arguments; one without a body of its own returns the function's text."""
    known = FUNCTIONS[function]
    body = known.helper or (f"return {known.text.format('a', 'b')}",)
    lines = [
        "@triton.jit",
        f"def {name(function)}(a, b):",
        f'    """{(known.formula or known.text).format("a", "b")}."""',
    ]
    return "\n".join([*lines, *(f"    {line}" for line in body)])
