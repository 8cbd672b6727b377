"""Where settings come from, which wins, and the messages for invalid ones.

The later named wins over the earlier: pyproject.toml, editor, command line. A value that is not valid leaves the
earlier one standing and is reported.
"""

from __future__ import annotations

import functools
import os
import tomllib
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernel_lsp import nearest
from kernel_lsp.errors import ProjectFileInvalid, ProjectTableUnknown, SettingInvalid, UserError
from kernel_lsp.settings.inputs import check_inputs
from kernel_lsp.settings.options import Option, Settings, camel, groups, kebab, options

Given = dict[str, Any]  # accepted values by the name of their field; a group's are a dictionary in it


def load(
    path: Path,
    editor: Mapping[str, Any] | None = None,
    cli: Mapping[str, Any] | None = None,
    *,
    trusted: bool = True,
) -> tuple[Settings, list[UserError]]:
    """The settings in force for the source file ``path``, and what was wrong with those given.

    Args:
        editor: the editor's ``kernelLsp`` section, camelCase. Its ``selectedInterpreter``, which is no setting, is what
            the user has chosen in the editor for Python in general: it stands in where nothing names an interpreter.
        cli: command line options, snake_case; None stands for "not given".
        trusted: False ignores settings that name programs or the store, or where code and keys are sent (from pyproject.toml
            and the editor alike).
    """
    project, table, problems = read_project(path)
    given: Given = {}
    inputs = table.pop("inputs", {})
    given |= _accept(table, kebab, str(project), trusted, problems)
    given |= _accept(dict(editor or {}), camel, "kernelLsp", trusted, problems, report_unknown=False)
    selected = (editor or {}).get("selectedInterpreter")
    if trusted and isinstance(selected, str) and not given.get("interpreter"):
        given["interpreter"] = selected
    given |= _accept({k: v for k, v in (cli or {}).items() if v is not None}, str, "command line", True, problems)
    root = project.parent if project else None
    plain = {name: value for name, value in given.items() if "." not in name}
    for group, kind in groups().items():
        inner = {name.partition(".")[2]: value for name, value in given.items() if name.startswith(f"{group}.")}
        plain[group] = kind(**inner)
    return Settings(**plain, inputs=check_inputs(inputs, project, problems), root=root), problems


def read_project(path: Path) -> tuple[Path | None, dict[str, Any], list[UserError]]:
    """The nearest pyproject.toml above the file ``path``, its ``[tool.kernel-lsp]`` table, and what was wrong with it."""
    for folder in Path(os.path.abspath(path)).parents:
        project = folder / "pyproject.toml"
        try:
            stat = project.stat()
        except OSError:
            continue
        table, found = _parse_project(project, stat.st_mtime_ns, stat.st_size)
        return project, dict(table), list(found)
    return None, {}, []


@functools.lru_cache(maxsize=64)
def _parse_project(project: Path, mtime: int, size: int) -> tuple[dict[str, Any], tuple[UserError, ...]]:
    """Cached by the file's time and size, because an editor asks for settings on every request."""
    try:
        data = tomllib.loads(project.read_text("utf-8"))
    except (OSError, ValueError) as error:
        return {}, (ProjectFileInvalid(path=str(project), detail=error),)
    tool = data.get("tool", {})
    table = tool.get("kernel-lsp", {}) if isinstance(tool, dict) else tool
    if not isinstance(table, dict):
        return {}, (ProjectFileInvalid(path=str(project), detail="tool.kernel-lsp is not a table"),)
    meant = nearest.nearest("kernel-lsp", (name for name in tool if name != "kernel-lsp"), cutoff=0.8)
    return table, (ProjectTableUnknown(path=str(project), name=meant),) if meant else ()


def _accept(
    values: dict[str, Any],
    spelling: Callable[[str], str],
    where: str,
    trusted: bool,
    problems: list[UserError],
    report_unknown: bool = True,
) -> Given:
    """The values that are options and valid, by the option's name; what is wrong with the others goes to ``problems``."""
    accepted: Given = {}
    known = {spelling(option.name): option for option in options()}
    for name, value in _flat(values, spelling, where, problems).items():
        option = known.get(name)
        if option is None:
            if report_unknown:
                detail = "there is no such setting" + nearest.hint(name, known)
                # Not the value: somebody may have put a key there.
                problems.append(SettingInvalid(name=name, given="", detail=f"{detail} ({where})", path=where))
            continue
        if value is None or (option.field.metadata["program"] and not trusted):
            continue
        value, wrong = _convert(option, value)
        if wrong:
            given = "" if option.group == "openai" else f" = {value!r}"  # there may be a secret in it
            problems.append(SettingInvalid(name=name, given=given, detail=f"{wrong} ({where})", path=where))
        else:
            accepted[option.name] = value
    return accepted


def _flat(
    values: dict[str, Any], spelling: Callable[[str], str], where: str, problems: list[UserError]
) -> dict[str, Any]:
    """The values with those of a group named ``group.option``; a client may have sent them so already."""
    names = {spelling(group) for group in groups()}
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if name not in names:
            flat[name] = value
        elif isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": item for inner, item in value.items()}
        elif value is not None:
            problems.append(
                SettingInvalid(name=name, given=f" = {value!r}", detail=f"it must be a table ({where})", path=where)
            )
    return flat


def _convert(option: Option, value: Any) -> tuple[Any, str]:
    """The value in the option's type and what is wrong with it. A bool is no number, an int is a float."""
    owner = groups()[option.group] if option.group else Settings
    kind = typing.get_type_hints(owner)[option.field.name]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind == list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            return value, "it must be a list of strings"
    elif type(value) is not kind:
        words = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
        return value, f"it must be {words[kind]}"
    check = option.field.metadata["check"]
    return value, check(value) if check else ""
