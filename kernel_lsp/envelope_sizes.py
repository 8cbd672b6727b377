"""What the envelopes in a kernel file ask of the sizes of forward's tensors, read from the file's code.

The standard library alone. A condition is a comparison of sizes with sizes or numbers, ``x.shape[2] * x.shape[3] == 256``; the bounds
that every kernel has for its offsets are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping

from kernel_lsp.class_schema import Specimen
from kernel_lsp.envelope_constants import UNBOUNDED, conjuncts

_METHOD = "_in_envelope"
_SIZE = re.compile(r"([\w.\[\]'\"]+)\.shape\[(\d+)\]")
_SHOWN = 2  # conditions that a line names


def conditions(body: str, number: int = 1) -> list[ast.Compare]:
    """The conditions on sizes of a file's envelope ``number``; none where there is no such envelope, or it is no Python."""
    name = _name(number)
    try:
        tree = ast.parse(body)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name), None)
    if found is None:
        return []
    given = found.args
    names = {one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg] if one}
    return [one for node in conjuncts(found) or [] for one in _single(node) if _is_of_sizes(one, names - {"self"})]


def has_envelope(body: str, number: int = 1) -> bool:
    """Whether the file has an envelope of that number."""
    return f"def {_name(number)}(" in body


def _name(number: int) -> str:
    return _METHOD + (f"_{number}" if number > 1 else "")


def _single(node: ast.expr) -> Iterator[ast.Compare]:
    """A comparison as it is, one of a shape with a tuple as one of each size."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    left, right = node.left, node.comparators[0]
    if isinstance(left, ast.Attribute) and left.attr == "shape" and isinstance(right, ast.Tuple):
        for place, size in enumerate(right.elts):
            at = ast.Subscript(left, ast.Constant(place), ast.Load())
            yield ast.Compare(at, node.ops, [size])
    else:
        yield node


def _is_of_sizes(node: ast.Compare, names: set[str]) -> bool:
    sides = (node.left, node.comparators[0])
    return all(_is_size(side, names) for side in sides) and any(_sizes(side) for side in sides)


def _is_size(node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_size(node.left, names) and _is_size(node.right, names)
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    root: ast.expr = node
    while isinstance(root, ast.Subscript | ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in names and _SIZE.fullmatch(ast.unparse(node)) is not None


def _sizes(node: ast.expr) -> list[str]:
    """The sizes in an expression: ``x.shape[0]``."""
    texts = [ast.unparse(one) for one in ast.walk(node) if isinstance(one, ast.Subscript)]
    return [text for text in texts if _SIZE.fullmatch(text)]


def _with_number(node: ast.Compare) -> tuple[str, type[ast.cmpop], int] | None:
    """(size, comparison, number) of ``x.shape[0] >= 3``; None of another condition."""
    right = node.comparators[0]
    text = ast.unparse(node.left)
    if _SIZE.fullmatch(text) and isinstance(right, ast.Constant) and isinstance(right.value, int):
        return text, type(node.ops[0]), right.value
    return None


def ranges(found: list[ast.Compare]) -> dict[str, tuple[int, int]]:
    """Size → (least, greatest) by the conditions that compare it with a number. No kernel takes a size of 0."""
    result: dict[str, tuple[int, int]] = {}
    for size, comparison, number in filter(None, map(_with_number, found)):
        least, greatest = result.get(size, (1, UNBOUNDED))
        low, high = _BOUNDS.get(comparison, lambda n: (1, UNBOUNDED))(number)
        result[size] = max(least, low), min(greatest, high)
    return result


#: comparison → the range that it leaves; of ``!=`` alone what leaves out a size of one
_BOUNDS: Mapping[type[ast.cmpop], Callable[[int], tuple[int, int]]] = {
    ast.Eq: lambda n: (n, n),
    ast.NotEq: lambda n: (2 if n == 1 else 1, UNBOUNDED),
    ast.GtE: lambda n: (n, UNBOUNDED),
    ast.Gt: lambda n: (n + 1, UNBOUNDED),
    ast.LtE: lambda n: (1, n),
    ast.Lt: lambda n: (1, n - 1),
}


def relations(found: list[ast.Compare], specimen: Specimen, shown: Specimen | None = None) -> list[str]:
    """The other conditions, by the names of free sizes: ``x_2 * x_3 == 256``; without what the inputs say by their names.

    ``shown``: the specimen with the names that are to be used.
    """
    known, names = _symbols(specimen), _symbols(shown or specimen)
    result = []
    for node in found:
        sides = (node.left, node.comparators[0])
        plain = [known.get(ast.unparse(side)) for side in sides]
        said = plain[0] is not None and (plain[0] == plain[1] or not plain[0].isidentifier())
        if not said and _with_number(node) is None:
            result.append(_SIZE_IN_TEXT.sub(lambda text: names.get(text[0]) or text[0], ast.unparse(node)))
    return result


_SIZE_IN_TEXT = re.compile(r"\w+(?:\[[^\]]*\])*\.shape\[\d+\]")


def _symbols(specimen: Specimen) -> dict[str, str]:
    """Size → the symbol of its dimension, where that is free."""
    return {
        f"{spec.name}.shape[{place}]": symbol
        for spec in specimen.inputs
        for place, symbol in enumerate(spec.dynamic)
        if symbol
    }


def only_where(body: str, specimen: Specimen | None) -> str:
    """``Kernel only where x.shape[1] == 32; other calls run eager.``, where forward itself takes other sizes; else "".

    torch.export fixes sizes of 1 whatever forward does with them, so that another example helps there: that is said, too.
    """
    if specimen is None or has_envelope(body, 2):
        return ""
    narrowing = [node for node in conditions(body) if _narrows(node, specimen)]
    texts = [ast.unparse(node) for node in narrowing]
    of_one = any(found[2] == 1 for found in map(_with_number, narrowing) if found is not None)
    advice = " A size of 1 in the example stays 1: give 2 or more for it to vary." if of_one else ""
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    said = ", ".join(texts[:_SHOWN]) if more else " and ".join(texts)
    return f"Kernel only where {said}{more}; other calls run eager.{advice}" if texts else ""


def _narrows(node: ast.Compare, specimen: Specimen) -> bool:
    """Whether a condition fixes a size that forward takes otherwise, or a product of sizes."""
    if not isinstance(node.ops[0], ast.Eq) or _sizes(node.comparators[0]):
        return False
    fixed = _with_number(node)
    if fixed is None:
        return len(_sizes(node.left)) > 1 and _is_product(node.left)
    found = _SIZE.fullmatch(fixed[0])
    spec = next((one for one in specimen.inputs if found and one.name == found[1]), None)
    if found is None or spec is None:
        return False
    place = int(found[2])
    return place in spec.narrowed or (place < len(spec.dynamic) and spec.dynamic[place] is not None)


def _is_product(node: ast.expr) -> bool:
    return not isinstance(node, ast.BinOp) or (
        isinstance(node.op, ast.Mult) and _is_product(node.left) and _is_product(node.right)
    )
