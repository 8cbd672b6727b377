"""What a person would strike out of a kernel's text, found in its syntax tree."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator


def superfluous(source: str) -> list[str]:
    """All that does nothing in a text: ``FUNCTION: EXPRESSION``, with what is wrong with it."""
    tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    launched = _launched_with(tree)
    found = [f"{function.name}: {text}" for function in functions for text in _without_effect(function)]
    for kernel in functions:
        if isinstance(kernel, ast.FunctionDef) and kernel.decorator_list:
            found += [f"{kernel.name}: {text} is loaded twice" for text in loaded_twice(kernel.body)]
            found += [
                f"{kernel.name}: {text} cannot fail" for text in _always_true(kernel, launched.get(kernel.name, {}))
            ]
    return found


def _without_effect(function: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Operations that give their other operand.

    ``x + 0.0`` and ``x * 0.0`` are none: the first makes 0.0 of -0.0, the second NaN of infinity. Nor is ``0 * rows``, by which an index gets
    the shape of a block, nor ``n * 1.0`` as the divisor of ``tl.div_rn``, which takes no integer.
    """
    divisors = {
        id(node.args[1]) for node in ast.walk(function) if isinstance(node, ast.Call) and _called(node) == "tl.div_rn"
    }
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and id(node) not in divisors:
            left, right = _number(node.left), _number(node.right)
            both = (left, right)
            match node.op:
                case ast.Mult():
                    superfluous = 1 in both
                case ast.Add():
                    superfluous = any(type(n) is int and n == 0 for n in both)
                case ast.Sub():
                    superfluous = right == 0
                case ast.Div() | ast.FloorDiv() | ast.Pow():
                    superfluous = right == 1
                case ast.BitAnd() | ast.BitOr():
                    constants = [n for n in (node.left, node.right) if isinstance(n, ast.Constant)]
                    superfluous = any(isinstance(n.value, bool) for n in constants)
                    superfluous = superfluous or ast.dump(node.left) == ast.dump(node.right)
                case _:
                    superfluous = False
            if superfluous:
                yield ast.unparse(node)
        elif isinstance(node, ast.BoolOp):
            if any(isinstance(value, ast.Constant) for value in node.values):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and _called(node) == "tl.where" and isinstance(node.args[0], ast.Constant):
            yield ast.unparse(node)


def _number(node: ast.expr) -> int | float | None:
    """A number that stands in the text, True and False left out."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    return None


def loaded_twice(body: list[ast.stmt], before: dict[str, set[str]] | None = None) -> Iterator[str]:
    """Loads that were made before, from the same place, with nothing stored and none of their names set in between.

    A branch may load again what would take registers until then.
    """
    known = dict(before or {})  # the names in a load, by its text
    for statement in body:
        blocks = [block for name in ("body", "orelse") if (block := getattr(statement, name, None))]
        nodes = list(ast.walk(statement))
        if not blocks:
            for call in _calls(nodes, "tl.load"):
                text = ast.unparse(call)
                if text in known:
                    yield text
                known[text] = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
        written = _calls(nodes, "tl.store", "tl.atomic", "tl.debug_barrier")
        changed = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        known = {} if written else {text: names for text, names in known.items() if not names & changed}
        for block in blocks:
            yield from loaded_twice(block, {} if isinstance(statement, ast.If) else known)


def _calls(nodes: list[ast.AST], *names: str) -> list[ast.Call]:
    return [node for node in nodes if isinstance(node, ast.Call) and _called(node).startswith(names)]


def _called(call: ast.Call) -> str:
    """``tl.load`` and the like; "" for what is no attribute of a name."""
    func = call.func
    return (
        f"{func.value.id}.{func.attr}" if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else ""
    )


def _launched_with(tree: ast.Module) -> dict[str, dict[str, int]]:
    """By kernel, the whole numbers that it is launched with by name, where they are the same in all its launches."""
    values: dict[str, dict[str, set[int | None]]] = defaultdict(lambda: defaultdict(set))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Subscript)
            and isinstance(node.func.value, ast.Name)
        ):
            for keyword in node.keywords:
                number = _number(keyword.value)
                values[node.func.value.id][str(keyword.arg)].add(number if isinstance(number, int) else None)
    return {
        kernel: {name: number for name, (number, *more) in arguments.items() if not more and number is not None}
        for kernel, arguments in values.items()
    }


def _always_true(kernel: ast.FunctionDef, sizes: dict[str, int]) -> Iterator[str]:
    """Comparisons of places of a block with a size that no place reaches: ``tl.arange(0, BLOCK) < n`` where BLOCK is at most n."""
    places: dict[str, list[ast.expr | None]] = defaultdict(list)
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            places[node.targets[0].id].append(node.value)
        elif isinstance(node, ast.AugAssign | ast.For):
            places[ast.unparse(node.target)].append(None)

    def size(node: ast.expr) -> int | None:
        number = sizes.get(node.id) if isinstance(node, ast.Name) else _number(node)
        return number if isinstance(number, int) else None

    def end(node: ast.expr | None) -> int | None:
        """What all places of ``node`` are below; None where that does not stand in the text."""
        if isinstance(node, ast.Subscript):
            return end(node.value)
        if isinstance(node, ast.Name) and len(places[node.id]) == 1:
            return end(places[node.id][0])
        if isinstance(node, ast.Call) and _called(node) == "tl.arange" and len(node.args) == 2:
            return size(node.args[1])
        return None

    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt):
            last, limit = end(node.left), size(node.comparators[0])
            if last is not None and limit is not None and last <= limit:
                yield ast.unparse(node)
