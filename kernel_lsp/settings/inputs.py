"""``[tool.kernel-lsp.inputs]``: whether its tables have the right form, and name classes and dtypes that there are."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel_lsp import nearest
from kernel_lsp.analysis import read_file
from kernel_lsp.analysis.resolve import outline_of
from kernel_lsp.errors import SettingInvalid, UserError

_KINDS: dict[str, type] = {"init": list, "init-kwargs": dict, "args": list, "kwargs": dict, "examples": list}
_OF_AN_EXAMPLE: dict[str, type] = {"args": list, "kwargs": dict}
_TENSOR = re.compile(r"(?P<dtype>[A-Za-z]+\d*\w*)\[(?P<shape>[^\]]*)\](?:\s*<\s*(?P<below>\S+))?")
#: the beginning of a tensor whose rest is none: ``float32[8, 512``, ``float32(8, 512)``
_LIKE_TENSOR = re.compile(r"\s*(?P<dtype>[A-Za-z]\w*)\s*[\[(]\s*\d")
#: the names of torch's dtypes
DTYPES = (
    *("float32", "float", "float64", "double", "float16", "half", "bfloat16"),
    *("int8", "int16", "short", "int32", "int", "int64", "long", "uint8", "uint16", "uint32", "uint64", "bool"),
    *("complex32", "complex64", "cfloat", "complex128", "cdouble", "chalf"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
)


def check_inputs(tables: Any, project: Path | None, problems: list[UserError]) -> dict[str, dict[str, Any]]:
    """The tables that can be used; what is wrong goes to ``problems``. ``project``: the pyproject.toml they stand in."""
    where = str(project)

    def report(name: str, wrong: str) -> None:
        problems.append(SettingInvalid(name=name, given="", detail=f"{wrong} ({where})", path=where))

    if not isinstance(tables, dict):
        report("inputs", "it must be a table")
        return {}
    good = {}
    for name, table in tables.items():
        wrong = _wrong_form(name, table) or _wrong_tensor(table)
        if not wrong:
            good[name] = table
            wrong = _wrong_class(name, project.parent) if project is not None else ""
        if wrong:
            report(f'inputs."{name}"', wrong)
    return good


def _wrong_form(name: str, table: Any) -> str:
    if "::" not in name:
        return 'its name must be "<file>::<Class>"'
    if wrong := _wrong_entries(table, _KINDS):
        return wrong
    if "examples" not in table:
        return ""
    if not table["examples"]:
        return "examples must hold a table for each example"
    if own := [key for key in _OF_AN_EXAMPLE if key in table]:
        return f"{own[0]} must stand in the tables of examples, not beside them"
    wrongs = ((i, _wrong_entries(one, _OF_AN_EXAMPLE)) for i, one in enumerate(table["examples"], 1))
    return next((f"examples, number {i}: {wrong}" for i, wrong in wrongs if wrong), "")


def _wrong_entries(table: Any, kinds: Mapping[str, type]) -> str:
    """What is wrong with the names and kinds of a table's entries."""
    if not isinstance(table, dict):
        return "it must be a table"
    wrong = ""
    for key, value in table.items():
        if key not in kinds:
            wrong = f"{key} is none of {', '.join(kinds)}{nearest.hint(key, kinds)}"
        elif not isinstance(value, kinds[key]):
            wrong = f"{key} must be a {'list' if kinds[key] is list else 'table'}"
    return wrong


def _wrong_tensor(value: Any) -> str:
    """What is wrong with the first text that is meant to be a tensor."""
    if isinstance(value, dict) and "shape" in value and set(value) <= {"shape", "dtype", "device"}:
        return f'{value!r} is a table; a tensor is a text, for instance "float32[8, 512]"'
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return next((wrong for one in inner if (wrong := _wrong_tensor(one))), "")
    if not isinstance(value, str):
        return ""
    found = _TENSOR.fullmatch(value.strip())
    if found is None:
        like = _LIKE_TENSOR.match(value)
        if like is None or like["dtype"] not in DTYPES:
            return ""
        return f"{value!r} is no tensor: it is written as {like['dtype']}[8, 512]"
    near = nearest.hint(found["dtype"], DTYPES)
    if found["dtype"] not in DTYPES:
        is_shape = re.fullmatch(r"\s*\d+(\s*,\s*\d+)+\s*", found["shape"])
        # What is neither near to a dtype nor followed by sizes is just a text.
        return f"{value!r}: {found['dtype']} is no dtype of torch{near}" if near or is_shape else ""
    if not re.fullmatch(r"\s*(\d+\s*(,\s*\d+\s*)*,?\s*)?", found["shape"]):
        return f"{value!r}: the sizes must be numbers with commas between them, for instance {found['dtype']}[8, 512]"
    if found["below"] is not None and not found["below"].isdigit():
        return f"{value!r}: what follows < must be a number, for instance int64[8] < 100"
    return ""


def _wrong_class(name: str, root: Path) -> str:
    """Whether a table is for a class that is not there: then it would never be used."""
    file, _, class_name = name.rpartition("::")
    path = root / file
    try:
        stat = path.stat()
    except OSError:
        known = [one.relative_to(root).as_posix() for one in path.parent.glob("*.py")] if path.parent.is_dir() else []
        return f"there is no file {file}{nearest.hint(file, known)}"
    names = _names(path, stat.st_mtime_ns, stat.st_size)
    if names is None or class_name in names:
        return ""
    return f"{file} has no class {class_name}{nearest.hint(class_name, names)}"


@functools.lru_cache(maxsize=256)
def _names(path: Path, mtime: int, size: int) -> tuple[str, ...] | None:
    """The classes of a file, and what it imports; None where that cannot be told. Cached by its time and size."""
    text = read_file(path)
    if text is None:
        return None
    found = outline_of(text)
    if found.stars:
        return None
    return tuple([*(c.name for c in found.classes), *found.imports, *found.aliases])
