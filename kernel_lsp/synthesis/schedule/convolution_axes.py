"""What the letters of a convolution stand for: the names of the parts of a flat index in its kernel.

Lowerings write ``n`` for the image, ``c`` for the input's channel, ``t u v`` for the place in the result (of one phase, where there are
phases ``x y z``), and ``i j k`` for the place in the window.
"""

from __future__ import annotations

import re

import sympy

from ..graph.value import PHASES, PLACES, TAPS, Contract
from ..kernel.domain import Domain

_DIMENSIONS = {2: ("row", "col"), 3: ("depth", "row", "col")}


def names_of_letters(op: Contract) -> dict[str, str]:
    """A name for each letter, as in ``t`` → ``pixel_row``; none for products that are no convolution."""
    if not op.written.convolves:
        return {}
    letters = {*op.left_axes, *op.right_axes}
    spatial = sum(letter in letters for letter in PLACES)
    found = {"n": "image" if spatial == 2 else "sample", "g": "group", "c": "channel", "o": "out_channel"}
    for way, prefix in ((PLACES, "pixel_"), (PHASES, "phase_"), (TAPS, "tap_")):
        dimensions = _DIMENSIONS.get(spatial, ("",))
        found |= {letter: f"{prefix}{name}".rstrip("_") for letter, name in zip(way, dimensions, strict=False)}
    return found


def part_names(op: Contract, at: dict[str, sympy.Expr], domain: Domain) -> dict[sympy.Expr, str]:
    """A name for each atom that a letter goes along, from the index ``at`` each; a place in a pooling window has two: which window, and where in it."""
    found: dict[sympy.Expr, str] = {}
    for letter, name in names_of_letters(op).items():
        if letter not in at:
            continue
        index = at[letter]
        found[index] = name
        if letter in PLACES and not isinstance(index, sympy.Symbol):
            for atom in index.free_symbols & set(domain.size):
                kind = "window" if atom in domain.reduced else "pooled"
                found[atom] = name.replace("pixel", kind)
    return found


def in_words(rows: list[str], cols: list[str], summed: list[str]) -> str:
    """A sentence on what a tile's rows and columns are, and what is summed, from the names of their parts; "" without names."""
    if not (rows and cols and summed):
        return ""
    named = [" and ".join(dict.fromkeys(_words(part) for part in parts)) for parts in (rows, cols, summed)]
    named = [re.sub(r"(images|samples) and pixels", r"the pixels of all \1", words) for words in named]
    return f"Rows are {named[0]}, columns {named[1]}; K goes along {named[2]}."


def _words(part: str) -> str:
    kind = part.partition("_")[0]
    known = {"channel": "input channels", "out": "output channels", "tap": "taps of the filter"}
    known |= {"pooled": "pixels", "window": "pixels"}
    return known.get(kind, f"{kind}s")
