"""Named tuples and dataclasses that forward returns: how a generated file gets their classes."""

from __future__ import annotations

import dataclasses
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

from torch.utils import _pytree as pytree

from kernel_lsp.envelope.errors import Unwritable

from ..records import Form

#: folders of installed packages
_INSTALLED = frozenset({"site-packages", "dist-packages"})
#: what a file that replays calls a class of its own
_TAKEN = frozenset({"_Graphs"})


def classes(spec: pytree.TreeSpec) -> list[type]:
    """The classes of named tuples and dataclasses in a result of the form ``spec``, each once."""
    if spec.is_leaf():
        return []
    kind = of_node(spec)
    found = [kind] if kind is not None else []
    for child in children(spec):
        found += [one for one in classes(child) if one not in found]
    return found


def of_node(spec: pytree.TreeSpec) -> type | None:
    """The class of a named tuple or a dataclass; None for a result of another kind."""
    if isinstance(spec.context, Form):
        return spec.context.kind
    kind = spec.context
    return kind if isinstance(kind, type) and pytree.is_namedtuple_class(kind) else None


def has_dataclasses(spec: pytree.TreeSpec) -> bool:
    """Whether a dataclass is among them."""
    return any(dataclasses.is_dataclass(kind) for kind in classes(spec))


def children(spec: pytree.TreeSpec) -> list[Any]:
    """Its parts, in all versions of torch."""
    return list(spec.children() if callable(getattr(spec, "children", None)) else spec.children_specs)


def variables(spec: pytree.TreeSpec) -> dict[type, str]:
    """What a generated file calls the classes: ``_Name``, with a number where another one has that name."""
    found: dict[type, str] = {}
    for kind in classes(spec):
        name, number = f"_{kind.__name__}", 2
        while name in {*_TAKEN, *found.values()}:
            name, number = f"_{kind.__name__}_{number}", number + 1
        found[kind] = name
    return found


def arguments(spec: pytree.TreeSpec, items: list[str]) -> str:
    """The arguments with which the class of a node is called; ``items``: the Python of its parts.

    Of a dataclass by keyword. A field that is None is left out where that is its default.
    """
    if not isinstance(spec.context, Form):
        return ", ".join(items)
    defaults = {field.name: field.default for field in dataclasses.fields(spec.context.kind)}
    pairs = zip(spec.context.names, items, strict=True)
    return ", ".join(f"{name}={item}" for name, item in pairs if item != "None" or defaults[name] is not None)


def imports(spec: pytree.TreeSpec) -> list[str]:
    """The import statements of the classes that are in installed packages."""
    found = {kind: name for kind, name in variables(spec).items() if _is_installed(kind)}
    return sorted(f"from {kind.__module__} import {kind.__name__} as {name}" for kind, name in found.items())


def definitions(spec: pytree.TreeSpec, module: str, alias: str) -> list[str]:
    """The lines that get the other classes, which follow ``import sys``.

    Args:
        spec: the form of what forward returns.
        module: the name of the user's module, which has to have the classes, or modules that have them.
        alias: what the file calls the user's class.

    Raises:
        Unwritable: a class is in another place, where the file could not find it.
    """
    lines = []
    for kind, name in variables(spec).items():
        if _is_installed(kind):
            continue
        path = _path(kind, module)
        if path is None:
            elsewhere = "" if _in(sys.modules.get(kind.__module__), kind) is None else "; import it there"
            raise Unwritable(
                "forward",
                f"the result is of the class {kind.__name__}, which is not at the top of the module{elsewhere}",
            )
        lines.append(f"{name} = sys.modules[{alias}.__module__].{path}")
    return lines


def _path(kind: type, module: str) -> str | None:
    """Python for the class behind the name of the user's module; None where it is not there."""
    namespace = sys.modules.get(module)
    if namespace is None:
        return None
    if (own := _in(namespace, kind)) is not None:
        return own
    held = {name: value for name, value in vars(namespace).items() if name.isidentifier()}
    for name, value in held.items():
        if value is kind:
            return name
    for name, value in held.items():
        if isinstance(value, types.ModuleType) and (inner := _in(value, kind)) is not None:
            return f"{name}.{inner}"
    return None


def _in(namespace: types.ModuleType | None, kind: type) -> str | None:
    """The qualified name of the class, where it is what a module has under it."""
    found: Any = namespace
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return kind.__qualname__ if found is kind else None


def _is_installed(kind: type) -> bool:
    """Whether an import statement gets it from an installed package or the standard library."""
    namespace = sys.modules.get(kind.__module__)
    if "." in kind.__qualname__ or _in(namespace, kind) is None:
        return False
    file = getattr(namespace, "__file__", None)
    if not file:
        return False
    return bool(_INSTALLED & {*Path(file).parts}) or Path(file).is_relative_to(sysconfig.get_path("stdlib"))
