"""``kernel-lsp validate KERNEL_FILE…``"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kernel_lsp import kernel_file, schema
from kernel_lsp.commands.running import Task, finish, run_tasks, settings_from
from kernel_lsp.errors import UserError
from kernel_lsp.jobs import Job, Jobs


def run(options: Any) -> int:
    """Validate kernel files again; exit status as in cli.py. Their headers are rewritten with ``--write`` alone."""
    tasks = [task_for(Path(name), options.write) for name in options.targets]
    completed = run_tasks(tasks, settings_from(options))
    document = tasks[0].to_json() if len(tasks) == 1 else {"reports": [task.to_json() for task in tasks]}
    return finish(tasks, completed, options, document)


def task_for(file: Path, write: bool) -> Task:
    """The validation of one kernel file."""
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
