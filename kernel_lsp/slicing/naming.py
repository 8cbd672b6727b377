"""A name in the slice for everything in it: its own, where that is free and nothing local hides it."""

from __future__ import annotations

import keyword
import sys

from kernel_lsp.slicing.collect import Collection, Item, Key, Name

MODEL = "Model"
GET_INPUTS, GET_INIT_INPUTS = "get_inputs", "get_init_inputs"


class Captured(Exception):
    """A name that must be given is taken by a local variable where it would be used."""


def assign(collection: Collection, items: list[Item], forced: dict[Key, str]) -> dict[Name, str]:
    """Names for what is imported and what ``items`` bind; ``forced`` has those that are settled.

    Raises:
        Captured: a name in ``forced`` is taken by a local variable where it would be used.
    """
    names: dict[Name, str] = {}
    taken = {MODEL, GET_INPUTS, GET_INIT_INPUTS} | collection.unresolved

    def hidden(key: Name) -> set[str]:
        return collection.hidden.get(key, set())

    def give(key: Name, wanted: str) -> None:
        name, number = wanted, 2
        while name in taken or name in hidden(key) or keyword.iskeyword(name):
            name, number = f"{wanted}_{number}", number + 1
        names[key] = name
        taken.add(name)

    for settled, name in forced.items():
        if name in hidden(settled):
            raise Captured(name)
        names[settled] = name
        taken.add(name)
    for imported in collection.imported:
        give(imported, imported.bound or imported.module.rpartition(".")[2])
    for item in items:
        for key in item.keys:
            if key not in names:
                give(key, key.name.rpartition(".")[2])
    return names


def import_lines(collection: Collection, names: dict[Name, str]) -> list[str]:
    """``import …`` lines, then ``from … import …``, one a module; the standard library's come first."""
    plain = {f"import {dotted}" for dotted in collection.dotted}
    members: dict[str, set[str]] = {}
    for imported in collection.imported:
        name = names[imported]
        whole = imported.name or imported.module
        text = whole if whole == name else f"{whole} as {name}"
        if imported.name is not None:
            members.setdefault(imported.module, set()).add(text)
        else:
            plain.add(f"import {text}")
    lines = [*sorted(plain), *(f"from {m} import {', '.join(sorted(texts))}" for m, texts in sorted(members.items()))]
    standard = [line for line in lines if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    others = [line for line in lines if line not in standard]
    return [*standard, *([""] if standard and others else []), *others]
