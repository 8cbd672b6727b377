"""``kernel-lsp validate PATH…``: kernel files, or folders with such."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernel_lsp import kernel_file, schema
from kernel_lsp.analysis import fingerprint, orphaned, read_file
from kernel_lsp.checking import git
from kernel_lsp.checking.findings import checked_of
from kernel_lsp.checking.records import DEFAULT_FAIL_ON
from kernel_lsp.commands import html
from kernel_lsp.commands.finding_lines import finding_lines
from kernel_lsp.commands.run_jobs import NOT_VALIDATED_WORDS, WANTED, Task, finish, refuse, run_tasks, settings_from
from kernel_lsp.commands.targets import existing, is_not_python
from kernel_lsp.commands.wrapping import say
from kernel_lsp.errors import ClassNotFound, KernelOrphaned, NotAKernelFile, NotAPythonFile, SourceGiven, UserError
from kernel_lsp.jobs import Job, Jobs
from kernel_lsp.settings import load
from kernel_lsp.suites.files import SKIPPED_FOLDERS


def run(options: Any) -> int:
    """Validate kernel files again; exit status as in cli.py. Their headers are rewritten with ``--write`` alone."""
    try:
        html.check_all(options.svg)
        paths = [existing(name) for name in options.targets]
    except UserError as error:
        return refuse(error, options.json)
    files = selected(paths)
    tasks = [task_for(file, options.write) for file in files]
    if not tasks and not options.json:
        return WANTED
    try:
        completed = run_tasks(tasks, settings_from(options), write=options.write) if tasks else True
    except UserError as error:
        return refuse(error, options.json)
    single = len(tasks) == 1 and len(paths) == 1 and not paths[0].is_dir()
    document = tasks[0].to_json() if single else {"reports": [task.to_json() for task in tasks]}
    status = finish(tasks, completed, options, document)
    if not options.json:
        checked = [
            checked_of(file, one.report, one.error, DEFAULT_FAIL_ON) for file, one in zip(files, tasks, strict=True)
        ]
        for line in finding_lines(checked, git.find_root(Path.cwd()) or Path.cwd()):
            print(line)
    return status


def selected(paths: list[Path]) -> list[Path]:
    """The kernel files at or under the paths, each once, in order; that there are none goes to standard error."""
    files = list({os.path.abspath(file): file for path in paths for file in kernel_files(path)}.values())
    if not files:
        say("no kernel files found")
    return files


def kernel_files(path: Path) -> Iterator[Path]:
    """The kernel files at or under a path, told by their first line; of a source file those of its classes, where there are some."""
    if not path.is_dir():
        yield from [path] if kernel_file.looks_like(path) else _of_source(path) or [path]
        return
    for parent, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("."))
        for name in sorted(files):
            file = Path(parent) / name
            if name.endswith(".py") and kernel_file.looks_like(file):
                yield file


def task_for(file: Path, write: bool) -> Task:
    """The validation of one kernel file."""
    kernel = Path(os.path.abspath(file))
    try:
        parsed = kernel_file.read(kernel)
        source = kernel_file.find_source(kernel, parsed)
        _check_class(file, parsed, source)
    except UserError as error:
        if isinstance(error, NotAKernelFile) and kernel.suffix == ".py" and not kernel_file.looks_like(kernel):
            error = SourceGiven(path=str(file))
        elif isinstance(error, NotAKernelFile) and is_not_python(file):
            wanted = "a kernel file (kernels/rms_norm_triton.py), a source file that has some, or a folder"
            error = NotAPythonFile(path=str(file), wanted=wanted)
        return Task(str(file), None, error=error, nothing=NOT_VALIDATED_WORDS)

    def submit(jobs: Jobs) -> Job:
        target = schema.Target(source.as_uri(), parsed.class_name)
        return jobs.submit("validate", target, source, kernel=kernel, write=write)

    return Task(str(file), submit, source=source, nothing=NOT_VALIDATED_WORDS)


def _check_class(file: Path, parsed: kernel_file.KernelFile, source: Path) -> None:
    """Find out that the class is gone from its source, for instance renamed.

    Raises:
        KernelOrphaned: it is.
    """
    text = read_file(source)
    if text is None:
        return  # the job says why it cannot be read
    try:
        fingerprint(text, source, parsed.class_name)
    except ClassNotFound:
        error = orphaned(text, source, parsed.class_name, os.path.relpath(file), os.path.relpath(source))
        if isinstance(error, KernelOrphaned):
            raise error from None


def _of_source(path: Path) -> list[Path]:
    """The kernel files of a source file's classes, in its kernel folder."""
    source = Path(os.path.abspath(path))
    folder = source.parent / os.path.expanduser(load(source)[0].kernel_folder)
    found = [kernel for kernel in kernel_files(folder) if _is_of(kernel, source)] if folder.is_dir() else []
    return [Path(os.path.relpath(kernel)) for kernel in found]


def _is_of(kernel: Path, source: Path) -> bool:
    try:
        return kernel_file.find_source(kernel, kernel_file.read(kernel)) == source
    except UserError:
        return False
