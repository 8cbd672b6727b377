"""What is known to be fast, and what goes wrong: short notes on hardware, on patterns and on Triton's versions.

A note is a Markdown file with a table in TOML at its head, between two lines ``+++``: ``operators`` (words of ATen names),
``capability`` (how a device's begins) or ``triton`` (how a version begins). It is chosen where one of them fits.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kernel_lsp.schema import Device

#: characters of all notes for one module
_MOST = 4000
_HEAD = re.compile(r"\A\+\+\+\n(.*?)^\+\+\+\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Note:
    """A note's text, and where it fits."""

    name: str
    text: str
    operators: frozenset[str] = frozenset()
    capability: tuple[str, ...] = field(default=())
    triton: tuple[str, ...] = field(default=())


@cache
def every() -> tuple[Note, ...]:
    """All notes, by name.

    Raises:
        ValueError: a note has no table at its head.
    """
    return tuple(_read(path) for path in sorted(Path(__file__).parent.glob("*.md")))


def chosen(ops: dict[str, int], device: Device | None) -> list[Note]:
    """The notes for a graph with these operators ("aten.conv2d" → how often) on a device: hardware, patterns, Triton.

    Patterns with more of the graph's operators come first. What is beyond a few thousand characters is left out.
    """
    capability, version = (device.capability, device.triton) if device is not None else ("", "")
    words = {op.split(".")[1] if "." in op else op: count for op, count in ops.items()}

    def weight(note: Note) -> int:
        return sum(count for word, count in words.items() if word in note.operators)

    hardware = [note for note in every() if capability.startswith(note.capability) and note.capability]
    patterns = sorted((note for note in every() if weight(note)), key=weight, reverse=True)
    versions = [note for note in every() if version.startswith(note.triton) and note.triton]
    found, length = [], 0
    for note in (*hardware, *versions, *patterns):
        length += len(note.text)
        if length > _MOST:
            break
        found.append(note)
    return found


def _read(path: Path) -> Note:
    text = path.read_text("utf-8")
    head = _HEAD.match(text)
    if head is None:
        raise ValueError(f"{path.name} has no head")
    table = tomllib.loads(head[1])
    return Note(
        path.stem,
        text[head.end() :].strip(),
        frozenset(table.get("operators", [])),
        tuple(table.get("capability", [])),
        tuple(table.get("triton", [])),
    )
