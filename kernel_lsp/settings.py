"""Every option, once: its name, type, default, documentation and the check of its value.

The same option is ``kernelLsp.workerPrefix`` in an editor, ``worker-prefix`` under ``[tool.kernel-lsp]`` in the nearest
pyproject.toml, and ``settings.worker_prefix`` here. The later named wins over the earlier: pyproject.toml, editor,
command line. A value that is not valid leaves the earlier one standing and is reported.

docs/settings.md is written from here (make docs).
"""

# ruff: noqa: RUF009  (_option wraps dataclasses.field)

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import re
import shutil
import sys
import tomllib
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_lsp.errors import ProjectFileInvalid, SettingInvalid, UserError

Check = Callable[[Any], str]  # what is wrong with a value of the right type; "" when nothing is


def _option(default: Any, doc: str, check: Check | None = None, *, program: bool = False) -> Any:
    """A field of ``Settings``. ``program`` marks what names a program: ignored in a workspace that is not trusted."""
    metadata = {"doc": doc, "check": check, "program": program}
    if isinstance(default, (list, dict)):
        return field(default_factory=lambda: default.copy(), metadata=metadata)
    return field(default=default, metadata=metadata)


def _more_than_zero(value: float) -> str:
    return "" if value > 0 else "it must be more than zero"


def _known_device(value: str) -> str:
    return "" if re.fullmatch(r"auto|interpreter|cuda(:\d+)?", value) else "use auto, cuda, cuda:N or interpreter"


def _not_empty(value: Any) -> str:
    return "" if value else "it must not be empty"


@dataclass(frozen=True)
class Settings:
    """The options in force for one source file. ``root`` is the folder of the nearest pyproject.toml, if there is one."""

    interpreter: str = _option(
        "",
        "The Python that has torch and triton and can import your modules. Empty: the Python that runs kernel-lsp. "
        "A relative path is relative to the folder of pyproject.toml; `~` is expanded.",
        program=True,
    )
    worker_prefix: list[str] = _option(
        [],
        'A command put in front of the interpreter, one argument an item: `["ssh", "gpu-box"]`, '
        '`["srun", "--gres=gpu:1"]`, `["docker", "exec", "-i", "box"]`. What it starts must see the same files under the '
        "same paths, and pass standard input and output through.",
        program=True,
    )
    kernel_folder: str = _option("kernels", "The folder for kernel files, relative to the source file.", _not_empty)
    generators: list[str] = _option(
        ["synthesizer"], "Where candidates come from, in this order. `synthesizer` writes them by rule.", _not_empty
    )
    samples: int = _option(8, "At most this many candidates from one generator.", _more_than_zero)
    seconds: float = _option(300.0, "Time budget of one job, in seconds.", _more_than_zero)
    device: str = _option(
        "auto",
        "Where kernels are judged: `auto` (a CUDA GPU where there is one, else Triton's interpreter), `cuda`, `cuda:N` or "
        "`interpreter`.",
        _known_device,
    )
    validate_on_save: bool = _option(
        True, "Judge the kernel of a class again when a save has changed what the class computes."
    )
    inlay_hints: bool = _option(False, "Show the speedup after the class name.")
    overwrite: bool = _option(False, "Overwrite a kernel file that was edited since kernel-lsp wrote it.")

    # Tables of pyproject.toml and where it lies; not options of their own.
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    root: Path | None = None

    def inputs_for(self, path: Path, class_name: str) -> dict[str, Any] | None:
        """The table ``[tool.kernel-lsp.inputs."<relative file>::<Class>"]`` of a class, or None."""
        if self.root is None or not self.inputs:
            return None
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        return self.inputs.get(f"{relative}::{class_name}")

    def interpreter_command(self) -> list[str]:
        """The worker's command up to and with the interpreter: ``[*prefix, interpreter]``.

        Behind a prefix the interpreter is a name on another machine (or in a container) and is passed as it stands.
        """
        if self.worker_prefix:
            return [*self.worker_prefix, self.interpreter or sys.executable]
        if not self.interpreter:
            return [sys.executable]
        chosen = os.path.expanduser(self.interpreter)
        if os.sep not in chosen and "/" not in chosen:
            return [shutil.which(chosen) or chosen]
        # Not resolved any further: a virtual environment's python is a link whose own place is what matters.
        return [os.path.abspath(os.path.join(self.root or Path.cwd(), chosen))]


def options() -> Iterator[dataclasses.Field[Any]]:
    """The fields of ``Settings`` that are options, in the order of the documentation."""
    return (f for f in dataclasses.fields(Settings) if "doc" in f.metadata)


def camel(name: str) -> str:
    """The editor's spelling: ``worker_prefix`` → ``workerPrefix``."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def kebab(name: str) -> str:
    """The spelling in pyproject.toml and of command line options: ``worker_prefix`` → ``worker-prefix``."""
    return name.replace("_", "-")


def load(
    path: Path,
    editor: Mapping[str, Any] | None = None,
    cli: Mapping[str, Any] | None = None,
    *,
    trusted: bool = True,
) -> tuple[Settings, list[UserError]]:
    """The settings in force for the source file ``path``, and what was wrong with those given.

    Args:
        editor: the editor's ``kernelLsp`` section, camelCase.
        cli: command line options, snake_case; None stands for "not given".
        trusted: False ignores settings that name programs (from pyproject.toml and the editor alike).
    """
    project, table, problems = read_project(path)
    given: dict[str, Any] = {}
    inputs = table.pop("inputs", {})
    given |= _accept(table, kebab, str(project), trusted, problems, report_unknown=True)
    given |= _accept(dict(editor or {}), camel, "kernelLsp", trusted, problems, report_unknown=False)
    given |= _accept({k: v for k, v in (cli or {}).items() if v is not None}, str, "command line", True, problems)
    root = project.parent if project else None
    return Settings(**given, inputs=_check_inputs(inputs, str(project), problems), root=root), problems


def read_project(path: Path) -> tuple[Path | None, dict[str, Any], list[UserError]]:
    """The nearest pyproject.toml above the file ``path``, its ``[tool.kernel-lsp]`` table, and what was wrong with it."""
    for folder in Path(os.path.abspath(path)).parents:
        project = folder / "pyproject.toml"
        try:
            stat = project.stat()
        except OSError:
            continue
        table, problem = _parse_project(project, stat.st_mtime_ns, stat.st_size)
        return project, dict(table), [problem] if problem else []
    return None, {}, []


@functools.lru_cache(maxsize=64)
def _parse_project(project: Path, mtime: int, size: int) -> tuple[dict[str, Any], UserError | None]:
    """Cached by the file's time and size, because an editor asks for settings on every request."""
    try:
        data = tomllib.loads(project.read_text("utf-8"))
    except (OSError, ValueError) as error:
        return {}, ProjectFileInvalid(path=str(project), detail=error)
    table = data.get("tool", {}).get("kernel-lsp", {})
    if not isinstance(table, dict):
        return {}, ProjectFileInvalid(path=str(project), detail="tool.kernel-lsp is not a table")
    return table, None


def _accept(
    values: dict[str, Any],
    spelling: Callable[[str], str],
    where: str,
    trusted: bool,
    problems: list[UserError],
    report_unknown: bool = False,
) -> dict[str, Any]:
    accepted: dict[str, Any] = {}
    known = {spelling(option.name): option for option in options()}
    for name, value in values.items():
        option = known.get(name)
        if option is None:
            if report_unknown:
                near = difflib.get_close_matches(name, known, n=1)
                detail = "there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
                problems.append(SettingInvalid(name=name, value=value, detail=f"{detail} ({where})", path=where))
            continue
        if value is None or (option.metadata["program"] and not trusted):
            continue
        value, wrong = _convert(option, value)
        if wrong:
            problems.append(SettingInvalid(name=name, value=value, detail=f"{wrong} ({where})", path=where))
        else:
            accepted[option.name] = value
    return accepted


def _convert(option: dataclasses.Field[Any], value: Any) -> tuple[Any, str]:
    """The value in the option's type and what is wrong with it. A bool is no number, an int is a float."""
    kind = typing.get_type_hints(Settings)[option.name]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind == list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            return value, "it must be a list of strings"
    elif type(value) is not kind:
        words = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
        return value, f"it must be {words[kind]}"
    check = option.metadata["check"]
    return value, check(value) if check else ""


def _check_inputs(tables: Any, where: str, problems: list[UserError]) -> dict[str, dict[str, Any]]:
    """The ``inputs`` tables that have the right form; values are for the worker to read."""
    if not isinstance(tables, dict):
        problems.append(SettingInvalid(name="inputs", value=tables, detail=f"it must be a table ({where})", path=where))
        return {}
    kinds = {"init": list, "init-kwargs": dict, "args": list, "kwargs": dict}
    good = {}
    for name, table in tables.items():
        wrong = ""
        if "::" not in name:
            wrong = 'its name must be "<file>::<Class>"'
        elif not isinstance(table, dict):
            wrong = "it must be a table"
        else:
            for key, value in table.items():
                if key not in kinds:
                    wrong = f"{key} is none of {', '.join(kinds)}"
                elif not isinstance(value, kinds[key]):
                    wrong = f"{key} must be a {'list' if kinds[key] is list else 'table'}"
        if wrong:
            problems.append(
                SettingInvalid(name=f'inputs."{name}"', value=table, detail=f"{wrong} ({where})", path=where)
            )
        else:
            good[name] = table
    return good
