"""Functions of a generated file that its kernels call: ``@triton.jit`` functions of one or two elements or tiles."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.functions import FUNCTIONS
from ..graph.monoids import MONOIDS
from ..kernel.ir import Apply, PrefixScan
from ..kernel.statements import Split
from ..schedule.program import Program, expressions, statements

#: What a program that waits for others calls, and what counts it.
TOGETHER = (
    '''@triton.jit
def _arrive(counter_ptr):
    """Count a program that has stored; who reads the count with an acquire sees what it stored."""
    tl.debug_barrier()
    tl.atomic_add(counter_ptr, 1, sem="release", scope="gpu")''',
    '''@triton.jit
def _wait_for(counter_ptr, count):
    """Wait until ``count`` programs have arrived; stop with an error of the GPU where that takes many seconds."""
    looks = 0
    while (tl.load(counter_ptr, volatile=True) < count) & (looks < 10_000_000):
        looks += 1
    if looks == 10_000_000:
        tl.inline_asm_elementwise("trap; mov.b32 $0, $1;", "=r,r", [looks], dtype=tl.int32, is_pure=False, pack=1)
    tl.debug_barrier()''',
)

#: How many programs surely run at once depends on it. The interpreter runs one after another, and none waits.
MULTIPROCESSORS = '''def _multiprocessors(device):
    """How many the GPU has; none that is not NVIDIA's, whose programs need other numbers of registers."""
    if device.type != "cuda":
        return 2**31
    return 0 if torch.version.hip else torch.cuda.get_device_properties(device).multi_processor_count'''

#: By the number of parts: the helper that takes a tile apart, and its definition.
SPLITS = {
    2: (
        "_in_two",
        '''@triton.jit
def _in_two(tile, ROWS: tl.constexpr, COLS: tl.constexpr):
    """The upper and the lower half of a tile, [2 * ROWS, COLS]."""
    return tl.split(tl.permute(tl.reshape(tile, (2, ROWS, COLS)), (1, 2, 0)))''',
    ),
    4: (
        "_in_four",
        '''@triton.jit
def _in_four(tile, ROWS: tl.constexpr, COLS: tl.constexpr):
    """The four quarters of a tile, [4 * ROWS, COLS], from the upper to the lower one."""
    pairs = tl.permute(tl.reshape(tile, (2, 2, ROWS, COLS)), (2, 3, 0, 1))
    first_and_third, second_and_fourth = tl.split(pairs)
    first, third = tl.split(first_and_third)
    second, fourth = tl.split(second_and_fourth)
    return first, second, third, fourth''',
    ),
}


def name(function: str) -> str:
    """What the helper for ``function``, a key of ``FUNCTIONS``, is called."""
    return f"_{function}"


def definitions(programs: Iterable[Program]) -> list[str]:
    """The helpers that the programs call, each once, in the order of their first use; before them the constants that they read."""
    needed: dict[str, None] = {}
    written: dict[str, None] = {}
    for program in programs:
        if program.together or program.in_turn:
            written |= dict.fromkeys(TOGETHER)
        for statement in statements(program.body):
            if isinstance(statement, Split):
                written[SPLITS[len(statement.variables)][1]] = None
        for expr in expressions(program.body):
            if isinstance(expr, PrefixScan) and not MONOIDS[expr.kind].scan:
                needed[MONOIDS[expr.kind].combine] = None
            elif isinstance(expr, Apply) and FUNCTIONS[expr.function].helper:
                needed[expr.function] = None
    constants = dict.fromkeys(FUNCTIONS[function].reads for function in needed if FUNCTIONS[function].reads)
    return [*constants, *(_definition(function) for function in needed), *written]


def _definition(function: str) -> str:
    """The helper of as many arguments as the function has; one without a body of its own returns the function's text."""
    known = FUNCTIONS[function]
    arguments = ", ".join("ab"[: len(known.inner)])
    body = known.helper or (f"return {known.text.format('a', 'b')}",)
    lines = [
        "@triton.jit",
        f"def {name(function)}({arguments}):",
        f'    """{(known.formula or known.text).format("a", "b")}."""',
    ]
    return "\n".join([*lines, *(f"    {line}" for line in body)])
