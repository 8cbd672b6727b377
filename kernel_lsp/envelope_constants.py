"""What a kernel file has for its envelope, of rules and of models alike. The standard library alone: both sides import this."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

#: what stands for a size's upper bound where an export knows none, or a greater one
UNBOUNDED = 2**31 - 1

#: name → the line that defines it
CONSTANTS = {
    "_DEVICE": '_DEVICE = "cpu" if triton.knobs.runtime.interpret else "cuda"',
    "_PLAIN": "_PLAIN = (torch.Tensor, torch.nn.Parameter)",
    "_MOST_ELEMENTS": "_MOST_ELEMENTS = 2**31 - 2**16  # offsets have 32 bits; the last block reaches beyond",
}

#: the import of what Triton's interpreter does not have by itself: there each of its functions gives None
LIBDEVICE = "from triton.language.extra import libdevice"


def size_range(least: int, greatest: int) -> str:
    """``2 to 64``, or ``2 or more`` where the upper bound is ``UNBOUNDED``."""
    return f"{least} to {greatest}" if greatest < UNBOUNDED else f"{least} or more"


def _not_by_the_interpreter_alone(why: str) -> str:
    """After ``_DEVICE``, in a file with ``LIBDEVICE``: a device that no tensor is on. ``why_not`` names it."""
    return f"""if triton.knobs.runtime.interpret and libdevice.tanh(0.0) is None:
    # Every call runs eagerly: Triton's interpreter alone cannot run the kernels.
    _DEVICE = "a GPU, since TRITON_INTERPRET=1 {why}\""""


WITHOUT_LIBDEVICE = _not_by_the_interpreter_alone("has no libdevice")
#: it takes the bits of a bfloat16 or float8 for an integer; where it is repaired, there is libdevice, too
WITHOUT_SHORT_FLOATS = _not_by_the_interpreter_alone("computes with the bits of bfloat16 and float8")


def envelope_body(conditions: Sequence[str]) -> str:
    """The body of ``_in_envelope``: whether all conditions hold. A module that lacks what they look at is outside.

    ``conditions``: Python expressions, and comments between them, in the order in which they are looked at.
    """
    lines = [line if line.startswith("#") or not number else f"and {line}" for number, line in enumerate(conditions)]
    test = "\n    ".join(["return (", *(lines or ["True"])]) + "\n)"
    if not any("self." in line for line in conditions):
        return test
    absent = "except (AttributeError, LookupError):\n    return False  # a module that was built otherwise runs eagerly"
    return f"try:\n{textwrap.indent(test, '    ')}\n{absent}"


def conjuncts(method: ast.FunctionDef) -> list[ast.expr] | None:
    """The conditions of an ``_in_envelope`` whose body is as ``envelope_body`` writes it; None of another."""
    body = [node for node in method.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    if len(body) == 1 and isinstance(body[0], ast.Try) and not body[0].orelse and not body[0].finalbody:
        body = body[0].body
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return None
    test = body[0].value
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
