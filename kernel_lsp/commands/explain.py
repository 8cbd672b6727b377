"""``kernel-lsp explain FILE::CLASS``: what the stages of the synthesizer make of a class; see docs/synthesizer.md."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kernel_lsp import schema
from kernel_lsp.commands.generate import print_stubs
from kernel_lsp.commands.run_jobs import (
    INTERRUPTED,
    WANTED,
    WRONG,
    Bar,
    Task,
    print_json,
    run_tasks,
    settings_from,
)
from kernel_lsp.commands.targets import one_class, parts
from kernel_lsp.commands.wrapping import say
from kernel_lsp.errors import UserError
from kernel_lsp.jobs import Job, Jobs

#: in the order in which they follow from each other
STAGES = ("graph", "kernels", "schedule", "text")


class _Bar(Bar):
    """The progress bar alone: what came of the job stands in what is printed."""

    def finished(self, job: Job) -> None:
        self.done += 1


def run(options: Any) -> int:
    """Exit status: 0; 1 where no kernel can be written; 2 where the class cannot be looked at."""
    stages = [options.stage] if options.stage else list(STAGES)
    asked = {"stages": stages, "gpu": options.target, "leave": options.leave, "example": options.example - 1}
    task = _task(options.class_path, asked)
    completed = True
    try:
        path, class_name = one_class(options.class_path)
        task = _task(f"{path}::{class_name}", asked)
        completed = run_tasks([task], settings_from(options), _Bar(1))
    except UserError as error:
        task.error = error
    explained = task.job.explained if task.job else None
    if options.json:
        print_json(_document(task, explained))
    elif explained is not None:
        from kernel_lsp.commands.explain_text import print_stages

        print_stages(explained)
    if not completed:
        say("cancelled")
        return INTERRUPTED
    if task.error is not None:
        say(task.error)
        if not options.json:
            print_stubs([task])
        return task.status()
    assert explained is not None
    if explained["error"] is not None:
        say(explained["error"]["message"])
        return WRONG
    return WANTED


def _task(class_path: str, asked: dict[str, Any]) -> Task:
    name, class_name = parts(class_path)
    path = Path(os.path.abspath(name))

    def submit(jobs: Jobs) -> Job:
        target = schema.Target(path.as_uri(), class_name)
        return jobs.submit("explain", target, path, write=False, further=asked)

    return Task(class_path, submit, source=path)


def _document(task: Task, explained: dict[str, Any] | None) -> dict[str, Any]:
    """The stages; all null beside the ``error`` where the class cannot be looked at."""
    if explained is not None:
        return explained
    class_name = task.name.rpartition("::")[2]
    nothing: dict[str, Any] = {"class_name": class_name, **dict.fromkeys(STAGES)}
    return nothing | {"error": task.error.to_json() if task.error else None}
