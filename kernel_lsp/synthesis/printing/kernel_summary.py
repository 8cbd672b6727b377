"""What a file's docstring says of its kernels: how each is tiled, and the least that is read and written."""

from __future__ import annotations

import textwrap

from ..graph.lowered import Graph
from ..graph.value import Value, View, input_of, numel
from ..kernel.execution_plan import Hints, hint
from ..schedule.halves import SPLIT
from ..schedule.plan import Allocate, CallTorch
from .host import Host

#: tensors that the docstring names
_MOST_NAMES = 12
#: kernels of one tiling, and tensors between kernels, that it names
_MOST_ALIKE = 4
#: and arguments of which it gives the shape
_MOST_SHAPES = 4

#: the precisions of ``tl.dot`` (Triton's documentation of ``input_precision``), in words
_PRECISIONS = {
    "tf32x3": "Products in tf32x3 are three products of TF32 parts, on tensor cores.",
    "bf16x6": "Products in bf16x6 are six products of bfloat16 parts.",
    "tf32": "Products in tf32 round float32 numbers to ten bits of mantissa.",
}
#: of kernels that split what they multiply, see ``schedule/halves.py``
_HALVES = "Numbers that a kernel splits by SPLIT are multiplied as two float16 parts each, in three products."


def tilings(host: Host, width: int) -> list[str]:
    """The sentences on the kernels' tilings in lines of ``width``. Of several kernels each begins with the names of those that it is about, and an empty line ends them."""
    if len(host.kernels) == 1:
        return textwrap.wrap(" ".join(dict.fromkeys(text for _, text in host.tilings)), width)
    names: dict[str, list[str]] = {}
    for name, text in dict.fromkeys(host.tilings):
        names.setdefault(text, []).append(name)
    said = [f"{_first_of(some, _MOST_ALIKE)}: {text}" for text, some in names.items()]
    return [*(line for text in said for line in textwrap.wrap(text, width, subsequent_indent="    ")), ""]


def precisions(host: Host) -> str:
    """What the words stand for that the launches pass to ``tl.dot`` as the precision of float32 products; "" where there are none."""
    blocks = [block for program in host.programs for block in program.blocks.items()]
    used = {value for _, value in blocks if isinstance(value, str)}
    said = [text for word, text in _PRECISIONS.items() if word in used]
    said += [_HALVES] if any(block.wanted == SPLIT for block, _ in blocks) else []
    return " ".join(said)


def counters(names: list[str]) -> str:
    """What becomes of attributes that the module counts in; "" where there are none."""
    if not names:
        return ""
    stay, read = ("stays as it was", "it") if len(names) == 1 else ("stay as they were", "them")
    return f"{_first_of(names, _MOST_ALIKE)} {stay} where the kernel runs: no method reads {read}."


def traffic(graph: Graph, host: Host, hints: Hints) -> str:
    """What has to be read and written at the least for the example, and what is added by tensors between kernels."""

    def size(values: list[Value]) -> str:
        return _bytes(sum(hint(numel(v.shape), hints) * v.dtype.itemsize for v in values))

    names = _first_of([name for name, _ in host.parameters], _MOST_NAMES)
    given = [(name, v) for name, v in host.parameters if input_of(v).kind == "argument" and v.shape]
    shapes = [f"{name} of shape {[hint(n, hints) for n in v.shape]}" for name, v in given]
    about = _first_of(shapes, _MOST_SHAPES) if shapes else "the example inputs"
    read, written = size([v for _, v in host.parameters]), size(list(graph.outputs))
    text = f"For {about} at least {read} are read ({names}) and {written} written."
    between = _between(graph, host)
    if not between:
        return text
    of = _first_of(list(dict.fromkeys(name for name, _ in between)), _MOST_ALIKE)
    return f"{text} What is stored from one kernel to the next ({of}) adds at least {size([v for _, v in between])} written and as much read."


def _between(graph: Graph, host: Host) -> list[tuple[str, Value]]:
    """The tensors that the host function holds for a while, with their names: what forward returns is not among them, nor what is kept."""
    kept: set[Value] = set()
    for value in graph.outputs:
        kept.add(value)
        while isinstance(value.op, View):
            value = value.op.operand
            kept.add(value)
    made: list[Value] = []
    for operation in host.plan.operations:
        if isinstance(operation, Allocate):
            made.append(operation.value)
        elif isinstance(operation, CallTorch) and not operation.is_view:
            made += operation.values
    return [(host.variables[v], v) for v in made if v not in kept and v not in host.packed_values]


def _first_of(names: list[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _bytes(n: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return f"{n:.4g} {unit}"
        n /= 1000
    raise AssertionError
