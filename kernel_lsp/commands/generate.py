"""``kernel-lsp generate FILE::CLASS…``."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from kernel_lsp import schema
from kernel_lsp.analysis import Source, imported_with_inputs, module_classes, syntax_error
from kernel_lsp.analysis.classes import identifier
from kernel_lsp.analysis.example_stub import stub
from kernel_lsp.analysis.parts import holders
from kernel_lsp.commands import html
from kernel_lsp.commands.run_jobs import NOT_VALIDATED, Task, finish, refuse, run_tasks, settings_from
from kernel_lsp.commands.targets import is_not_python, split
from kernel_lsp.commands.wrapping import filled, say, width_of
from kernel_lsp.errors import (
    NoExampleInputs,
    NoModuleClass,
    NotAPythonFile,
    PathMissing,
    ReportNotWritten,
    SourceUnreadable,
    UserError,
)
from kernel_lsp.jobs import Job, Jobs
from kernel_lsp.settings import load
from kernel_lsp.suites.files import python_files


def run(options: Any) -> int:
    """Generate for every class named; exit status as in cli.py."""
    try:
        html.check_all(options.html, options.svg)
        tasks = [task for target in options.targets for task in tasks_for(target, not options.no_write)]
    except (PathMissing, ReportNotWritten) as error:
        return refuse(error, options.json)
    known = {_normal(name) for name in options.may_fail}
    for task in tasks:
        task.may_fail, task.strict = _normal(task.name) in known, options.strict
    try:
        completed = run_tasks(tasks, settings_from(options), write=not options.no_write)
    except UserError as error:
        return refuse(error, options.json)
    single = len(options.targets) == 1 and "::" in options.targets[0]
    document = tasks[0].to_json() if single else {"reports": [task.to_json() for task in tasks]}
    rows = [task for task in tasks if not task.folded]
    page, unwritten = "", None
    if options.html is not None:
        try:
            html.write(options.html, rows)
            page = html.shown(options.html)
        except ReportNotWritten as error:  # the disk is full by now; the result is shown all the same
            unwritten = error
    status = finish(rows, completed, options, document, page)
    if not options.json:
        print_stubs(tasks)
    elif page:
        print(f"The report is {page}.", file=sys.stderr)
    if unwritten is not None:
        say(unwritten)
        return NOT_VALIDATED
    return status


def print_stubs(tasks: list[Task]) -> None:
    """What to paste for a class without example inputs; for several, how to get that for each."""
    parts = [task for task in tasks if task.folded]
    missing = [
        task for task in tasks if isinstance(task.error, NoExampleInputs) and task.job is not None and not task.folded
    ]
    several = len(parts) + len(missing) > 1 and any(task.of_folder for task in missing)  # too many stubs to paste
    if parts:
        from kernel_lsp.commands.report_table import names

        many = len(parts) > 1
        text = (
            f"{len(parts)} class{'es' if many else ''} without example inputs, part{'s' if many else ''} of others: "
            f"{', '.join(names(parts))}." + ("" if several else f" For a stub: {_stub_command(parts[0])}")
        )
        print(filled(text, width_of(sys.stdout)))
    if several:
        print(f"For a stub of a class's example inputs: {_stub_command(missing[0])}")
        return
    for task in missing:
        assert task.job is not None
        path, class_name = task.job.path, task.job.target.class_name
        try:
            source = Source(path.read_text("utf-8-sig"))
        except (OSError, UnicodeDecodeError):
            continue
        root = load(path)[0].root
        shown = path.relative_to(root).as_posix() if root is not None and path.is_relative_to(root) else path.name
        found = stub(source, path, class_name, shown=shown)
        print(f"\nPaste at the end of {task.name.partition('::')[0]}, and put in your shapes:\n\n{found.functions}")
        not_in_toml = f"{' and '.join(found.not_in_toml)}, which {'is an object' if len(found.not_in_toml) == 1 else 'are objects'}"
        if found.table and found.not_in_toml:
            init = f"get_init_inputs_{identifier(class_name)}()"
            print(
                f"Or the inputs in pyproject.toml, beside {init}: a table cannot hold {not_in_toml}.\n\n{found.table}"
            )
        elif found.table:
            print(f"Or in pyproject.toml:\n\n{found.table}")
        elif found.not_in_toml:
            print(f"There is no form for pyproject.toml: a table cannot hold {not_in_toml}.")


def _stub_command(task: Task) -> str:
    return f"kernel-lsp generate {shlex.quote(task.name)}"


def _normal(name: str) -> str:
    path, _, class_name = name.partition("::")
    return f"{os.path.normpath(path)}::{class_name}"


def tasks_for(target: str, write: bool) -> list[Task]:
    """The tasks that one argument means: a class, all classes of a file, or all classes of all files of a folder.

    Raises:
        PathMissing: there is no such file or folder.
    """
    path, class_name = split(target)
    if is_not_python(path):
        wanted = "a file (model.py) or a class in it (model.py::RMSNorm), or a folder"
        return [_failed(target, NotAPythonFile(path=str(path), wanted=wanted))]
    if class_name:
        return [_task(path, class_name, write)]
    if not path.is_dir():
        return _tasks_in(path, write) or [_failed(target, NoModuleClass(path=str(path)))]
    tasks = [task for file in python_files(path) for task in _tasks_in(file, write)]
    for task in tasks:
        task.of_folder = True
    return tasks or [_failed(target, NoModuleClass(path=str(path)))]


def _tasks_in(file: Path, write: bool) -> list[Task]:
    try:
        source = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        return [_failed(str(file), SourceUnreadable.of(file, error))]
    found = module_classes(source, Path(os.path.abspath(file)))
    names = dict.fromkeys([*(module.name for module in found), *imported_with_inputs(source)])
    hidden = syntax_error(source, file) if not names else None
    if hidden is not None:
        return [_failed(str(file), hidden)]
    holders_of = holders(Source(source), names, found)
    tasks = [_task(file, name, write, own_inputs=True) for name in names]
    for task, name in zip(tasks, names, strict=True):
        task.part = bool(holders_of[name])
    return tasks


def _failed(name: str, error: UserError) -> Task:
    return Task(name, None, error=error)


def _task(path: Path, class_name: str, write: bool, *, own_inputs: bool = False) -> Task:
    absolute = Path(os.path.abspath(path))

    def submit(jobs: Jobs) -> Job:
        target = schema.Target(absolute.as_uri(), class_name)
        return jobs.submit("generate", target, absolute, write=write, own_inputs=own_inputs)

    return Task(f"{path}::{class_name}", submit, source=absolute)
