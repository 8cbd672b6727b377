"""Reads the corpus: one file a class of cheat, mistake or honest kernel.

A file has a docstring (one sentence: what is wrong with it, or what is unusual and right), and these names:

- ``MODULE``, ``KERNEL``: the user's module and the kernel's source. The imports of torch, triton and the module are put
  before them. ``@home@``, ``@project@``, ``@outside@``, ``@tcp@``, ``@udp@`` and ``@token@`` are places of the scene.
- ``EXPECTED``: the statuses, or codes of errors, of which it must get one.
- ``GPU = True``: it means something on a GPU only.
- ``BEFORE``: a kernel that is validated before it.
- ``HOW``: more parameters of the worker's ``validate``.
- ``harm(answer)``: a sentence where the answer shows that harm was done, beside what the scene looks for.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FOLDERS = ("tampering", "no_kernel", "caching", "timing", "numerics", "sizes", "state", "harm", "honest")


@dataclass
class Entry:
    name: str  # "folder/file"
    says: str
    module: str
    kernel: str
    class_name: str
    expected: set[str]
    gpu: bool = False
    before: str = ""
    how: dict[str, Any] = field(default_factory=dict)
    harm: Callable[[dict[str, Any]], str | None] | None = None

    @property
    def honest(self) -> bool:
        return self.name.startswith("honest/")


def names() -> list[str]:
    """Of all files, in order."""
    return [f"{folder}/{path.stem}" for folder in FOLDERS for path in sorted((HERE / folder).glob("*.py"))]


def read(name: str) -> Entry:
    """The file of a name."""
    given = runpy.run_path(str(HERE / f"{name}.py"))
    found = re.findall(r"^class (\w+)Triton\(", given["KERNEL"], re.MULTILINE)
    return Entry(
        name=name,
        says=(given["__doc__"] or "").strip(),
        module=given["MODULE"],
        kernel=given["KERNEL"],
        class_name=found[-1],
        expected=set(given["EXPECTED"]),
        gpu=given.get("GPU", False),
        before=given.get("BEFORE", ""),
        how=given.get("HOW", {}),
        harm=given.get("harm"),
    )


def not_yet(file: str) -> dict[str, str]:
    """Name → what it gets today, of the files that validation does not treat as it should yet."""
    lines = (HERE / file).read_text().splitlines()
    pairs = [line.partition(": ") for line in lines if line.strip() and not line.startswith("#")]
    return {name: why for name, _, why in pairs}


def representatives() -> set[str]:
    """Names of the files that ``make test`` runs."""
    lines = (HERE / "representatives.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def parameters(which: list[Entry], file: str, fast: set[str] | None = None) -> list[Any]:
    """Names as parameters of a test: those in ``file`` must fail, but where it says "sometimes".

    All but ``fast`` are marked ``corpus`` where it is given.
    """
    known = not_yet(file)
    found = []
    for entry in which:
        marks = [pytest.mark.corpus] if fast is not None and entry.name not in fast else []
        if why := known.get(entry.name):
            said = f"{why} (where it passes now, take its line out of {file})"
            marks.append(pytest.mark.xfail(strict=not why.startswith("sometimes"), reason=said))
        found.append(pytest.param(entry.name, marks=marks))
    return found
