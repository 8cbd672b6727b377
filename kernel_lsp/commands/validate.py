"""``kernel-lsp validate KERNEL_FILE…`` and ``kernel-lsp check [PATH…]``"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernel_lsp import kernel_file, schema
from kernel_lsp.commands.running import Task, finish, run_tasks, settings_from
from kernel_lsp.errors import UserError
from kernel_lsp.jobs import Job, Jobs
from kernel_lsp.suites.files import SKIPPED_FOLDERS


def run(options: Any) -> int:
    """Judge kernel files again; exit status as in cli.py."""
    if options.command == "check":
        files = [file for name in options.targets or ["."] for file in kernel_files(Path(name))]
        if not files and not options.json:
            print("kernel-lsp: no kernel files found", file=sys.stderr)
            return 0
    else:
        files = [Path(name) for name in options.targets]
    tasks = [_task(file, not options.no_write) for file in files]
    completed = run_tasks(tasks, settings_from(options)) if tasks else True
    single = options.command == "validate" and len(tasks) == 1
    document = tasks[0].to_json() if single else {"reports": [task.to_json() for task in tasks]}
    return finish(tasks, completed, options, document)


def _task(file: Path, write: bool) -> Task:
    kernel = Path(os.path.abspath(file))
    try:
        parsed = kernel_file.read(kernel)
        source = kernel_file.find_source(kernel, parsed)
    except UserError as error:
        return Task(str(file), None, error=error)

    def submit(jobs: Jobs) -> Job:
        target = schema.Target(source.as_uri(), parsed.class_name)
        return jobs.submit("validate", target, source, kernel=kernel, write=write)

    return Task(str(file), submit)


def kernel_files(path: Path) -> Iterator[Path]:
    """The kernel files at or under a path, told by their first line."""
    if path.is_file():
        yield path
        return
    for parent, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("."))
        for name in sorted(files):
            file = Path(parent) / name
            if name.endswith(".py") and kernel_file.looks_like(file):
                yield file
