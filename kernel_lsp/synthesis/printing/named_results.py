"""Named tuples that forward returns: how a generated file gets their classes."""

from __future__ import annotations

import sys
from typing import Any

from torch.utils import _pytree as pytree

from kernel_lsp.envelope.errors import Unwritable


def named_tuples(spec: pytree.TreeSpec) -> list[type]:
    """The classes of named tuples in a result of the form ``spec``, each once."""
    if spec.is_leaf():
        return []
    kind = of_node(spec)
    found = [kind] if kind is not None else []
    for child in children(spec):
        found += [one for one in named_tuples(child) if one not in found]
    return found


def of_node(spec: pytree.TreeSpec) -> type | None:
    """The class of a named tuple; None for a result of another kind."""
    kind = spec.context
    return kind if isinstance(kind, type) and pytree.is_namedtuple_class(kind) else None


def children(spec: pytree.TreeSpec) -> list[Any]:
    """Its parts, in all versions of torch."""
    return list(spec.children() if callable(getattr(spec, "children", None)) else spec.children_specs)


def variable(kind: type) -> str:
    """What a generated file calls the class."""
    return f"_{kind.__name__}"


def definitions(spec: pytree.TreeSpec, module: str, alias: str) -> list[str]:
    """The lines that get the classes, which follow ``import sys``.

    Args:
        spec: the form of what forward returns.
        module: the name of the user's module, in which the classes have to be.
        alias: what the file calls the user's class.

    Raises:
        Unwritable: a class is in another place, where the file could not find it.
    """
    lines = []
    for kind in named_tuples(spec):
        if kind.__module__ != module or getattr(sys.modules.get(module), kind.__qualname__, None) is not kind:
            raise Unwritable(
                "forward", f"the result is of the class {kind.__name__}, which is not at the top of the module"
            )
        lines.append(f"{variable(kind)} = sys.modules[{alias}.__module__].{kind.__qualname__}")
    return lines
