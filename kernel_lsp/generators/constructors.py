"""What a constructor sets, read from its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator

from kernel_lsp.generators import torch_names
from kernel_lsp.generators.rewriting import Function, dotted


def first_argument(function: ast.AST | None) -> str:
    """What a method calls ``self``, "" for a static one."""
    if any(dotted(decorator) == "staticmethod" for decorator in getattr(function, "decorator_list", [])):
        return ""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    arguments = [*function.args.posonlyargs, *function.args.args]
    return arguments[0].arg if arguments else ""


def read_from(node: ast.AST, *owners: str) -> Iterator[ast.Attribute]:
    """``self.name`` wherever it stands, in the order of the source; ``owners``: what is called ``self``."""
    found = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    found = [n for n in found if isinstance(n.value, ast.Name) and n.value.id and n.value.id in owners]
    yield from sorted(found, key=lambda n: (n.lineno, n.col_offset))


def constructor_of_model(text: str) -> dict[str, tuple[str, ast.expr]]:
    """attribute → (normal text, value) of what the user's class sets, as far as one can see."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            for init in node.body:
                if isinstance(init, ast.FunctionDef) and init.name == "__init__":
                    places = positions(init)
                    return {n: (normal(v, places), v) for n, (v, _) in assigned(init).items()}
    return {}


def assigned(init: Function) -> dict[str, tuple[ast.expr, ast.stmt]]:
    """attribute → (value, statement) of what a constructor sets last."""
    own = first_argument(init)
    found: dict[str, tuple[ast.expr, ast.stmt]] = {}
    for node in _statements(init.body):
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(one, ast.Attribute) and dotted(one.value) == own:
                        found[one.attr] = (value, node)
        elif isinstance(node, ast.Expr) and isinstance(value, ast.Call) and len(value.args) > 1:
            method = dotted(value.func).removeprefix(f"{own}.")
            name = value.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                if method == "register_parameter":
                    found[name.value] = (ast.Call(ast.Name("Parameter"), [value.args[1]], []), node)
                elif method in ("register_buffer", "add_module", "register_module"):
                    found[name.value] = (value.args[1], node)
    return found


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))


def body_of(init: Function | None) -> list[ast.stmt]:
    """The statements of a constructor, none where the class has none of its own."""
    return init.body if init else []


def positions(init: Function) -> dict[str, str]:
    """The constructor's arguments by their places, whatever they are called."""
    arguments = [*init.args.posonlyargs, *init.args.args][1:]
    return {argument.arg: f"_{i}" for i, argument in enumerate(arguments)}


def normal(value: ast.expr, places: dict[str, str]) -> str:
    """A value as text, the same for two constructors that mean the same."""
    value = copy.deepcopy(value)
    for node in ast.walk(value):
        if isinstance(node, ast.Name):
            node.id = places.get(node.id, node.id)
    return ast.unparse(value).replace("torch.nn.", "nn.")


def stores(statement: ast.stmt, own: str) -> set[str]:
    """The attributes that a statement sets."""
    inside = _statements([statement])
    holder = ast.FunctionDef("f", _arguments(own), [*inside], [])
    return set(assigned(holder))


def _arguments(own: str) -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[ast.arg(own)], kwonlyargs=[], kw_defaults=[], defaults=[])


def binds(statement: ast.stmt) -> set[str]:
    """The plain names that a statement assigns, also within it; not attributes, imports or definitions."""
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def locals_of(init: Function | None) -> set[str]:
    """The names that mean something in the constructor alone."""
    if init is None:
        return set()
    arguments = init.args
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return {a.arg for a in every if a is not None} | {name for s in init.body for name in binds(s)}


def local_values(init: Function) -> dict[str, ast.expr]:
    """variable → what a constructor assigns to it first."""
    found: dict[str, ast.expr] = {}
    for node in _statements(init.body):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, node.value)
    return found


def calls_super(statement: ast.stmt) -> bool:
    """Whether a statement is an expression with a call of ``super`` in it, as ``super().__init__()``."""
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    return isinstance(statement, ast.Expr) and any(dotted(c.func) == "super" for c in calls)


def chain_of(value: ast.expr, own: str) -> list[str]:
    """``["linear", "weight"]`` for ``self.linear.weight``."""
    parts = dotted(value).split(".")
    return parts[1:] if own and parts[0] == own and len(parts) > 1 else []


def root(value: ast.expr) -> str:
    """What is called first: ``torch.arange`` in ``torch.arange(n).float()[None]``."""
    while True:
        if isinstance(value, ast.Call):
            name = dotted(value.func)
            if name:
                return name
            value = value.func
        elif isinstance(value, ast.Attribute | ast.Subscript):
            value = value.value
        elif isinstance(value, ast.BinOp):
            left = root(value.left)
            return left if left.startswith("torch.") else root(value.right)
        elif isinstance(value, ast.UnaryOp):
            value = value.operand
        else:
            return ""


def is_module(helper: ast.ClassDef) -> bool:
    """Whether a class may derive from ``nn.Module``: it has a base other than ``object`` and ``autograd.Function``."""
    return any(dotted(base).split(".")[-1] not in ("object", "Function", "") for base in helper.bases)


def has_state(value: ast.expr) -> bool:
    """Whether an expression makes one of torch's modules that has parameters or buffers."""
    return bool(torch_names.module_kind(value)) and not torch_names.is_stateless(value)
