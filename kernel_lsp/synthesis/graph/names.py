"""Names for variables and kernels: what a reader would call them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from kernel_lsp.naming import in_ascii

from .monoids import MONOIDS
from .value import Gather, Input, Iota, Pointwise, Recur, Reduce, Scan, Value, View

_NOUNS = {
    "add": "total",
    "sub": "difference",
    "mul": "scaled",
    "div": "ratio",
    "exp": "exponential",
    "log": "logarithm",
    "sqrt": "root",
    "rsqrt": "inv_root",
    "sigmoid": "gate",
    "where": "selected",
    "neg": "negated",
    "maximum": "larger",
    "minimum": "smaller",
    "abs": "magnitude",
    "pow": "power",
    "eq": "equal",
    "ne": "differs",
    "lt": "below",
    "le": "at_most",
    "gt": "above",
    "ge": "at_least",
    "and": "both",
    "or": "either",
    "not": "negation",
    "to_int32": "as_int",
    "to_int64": "as_int",
}


#: Names that the templates use themselves.
_RESERVED = frozenset(
    [
        "tl",
        "triton",
        "torch",
        "libdevice",
        "range",
        "self",
        "row",
        "rows",
        "col",
        "cols",
        "mask",
        "row_mask",
        "col_mask",
        "offsets",
        "start",
        "tile",
        "tiles",
        "n_tiles",
        "piece",
        "outer",
        "block",
        "chunk",
        "term",
        "k_blocks",
        "places",
        "plane",
        "acc",
        "full_sum",
        "ks",
        "batch",
        "batch_mask",
        "batch_block",
        "phase",
        "group",
        "group_rows",
        "lines",
        "line_places",
        "row_block",
        "row_blocks",
        "col_block",
        "col_blocks",
        "index",
        "column",
        "some_rows",
        "part",
        "part_before",
        "row_before",
        "cols_before",
        "mask_before",
        "block_before",
        "every_part",
        "n_parts",
        "n_blocks",
        "step",
        "steps",
        "units",
        "unit_mask",
        "unit",
        "gate_row",
        "weight_rows",
        "member",
        "weight_mask",
        "BLOCK",
        "ROWS",
        "CHUNK",
        "GROUP",
    ]
)


def identifier(wanted: str) -> str:
    """``wanted`` as Python allows it: ``v_0_weight`` for the weight of a ``Sequential``'s first layer."""
    wanted = re.sub(r"\W", "_", wanted).strip("_") or "value"
    return f"v_{wanted}" if wanted[0].isdigit() or keyword.iskeyword(wanted) else wanted


def of_kernel(wanted: str) -> str:
    """``wanted``, ``größe_kernel``, as PTX allows it: ``grosse_kernel``; ``module_kernel`` where no letter before ``_kernel`` is left."""
    plain = in_ascii(wanted).strip("_")
    return identifier(plain) if plain != "kernel" or plain == wanted else f"module_{plain}"


class Names:
    """Hands out names, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def fresh(self, wanted: str) -> str:
        """``wanted`` as an identifier, with a number where it is taken."""
        wanted = identifier(wanted)
        if wanted in _RESERVED:
            wanted = f"{wanted}_value"
        name, number = wanted, 2
        while name in self.taken:
            name = f"{wanted}{'_' if wanted[-1].isdigit() else ''}{number}"
            number += 1
        self.taken.add(name)
        return name


def variable_name(value: Value) -> str:
    """What a variable that holds ``value`` is called."""
    op = value.op
    if value.module or value.name:
        return value.module or value.name
    if value.meaning is not None:
        return value.meaning[0]
    if isinstance(op, Input):
        return value.name or "x"
    if isinstance(op, Pointwise):
        return _NOUNS.get(op.function, op.function.removeprefix("to_"))
    if isinstance(op, Scan):
        return MONOIDS[op.kind].scanned
    if isinstance(op, Reduce):
        return {"sum": "total", "argmax": "position", "argmin": "position"}.get(
            op.kind, f"row_{op.kind.removeprefix('a')}"
        )
    if isinstance(op, View):
        return variable_name(op.operand)
    if isinstance(op, Gather):
        return "picked"
    if isinstance(op, Iota):
        return "position"
    if isinstance(op, Recur):
        return op.loop.held[op.state].name or "state"
    return "value"
