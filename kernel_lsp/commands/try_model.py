"""``kernel-lsp models try NAME FILE::CLASS``: one model's answers for one class, and what became of each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kernel_lsp.commands.generate import tasks_for
from kernel_lsp.commands.run_jobs import Task, exit_status, finish, run_tasks, settings_from
from kernel_lsp.commands.targets import one_class
from kernel_lsp.errors import ModelNotHere
from kernel_lsp.errors.surface import adapted
from kernel_lsp.hub import cache


def run(options: Any) -> int:
    """Exit status as of ``kernel-lsp generate``; no file is written unless ``--write``.

    Raises:
        ModelNotHere: neither in the cache nor a file, folder or address.
        PathMissing, ClassNotNamed: not one class.
    """
    path, class_name = one_class(options.target)
    tasks = tasks_for(f"{path}::{class_name}", options.write)
    completed = run_tasks(tasks, settings_from(options, settings_of(options.name)))
    if options.json or not completed:
        return finish(tasks, completed, options, tasks[0].to_json())
    print_answers(tasks[0])
    finish(tasks, completed, options, None)
    return exit_status(tasks)


def settings_of(name: str) -> dict[str, Any]:
    """The settings that make ``name`` the one generator's model.

    Args:
        name: a model in the cache, a folder with safetensors, a GGUF file, or ``http://HOST:PORT/v1[#MODEL]``.

    Raises:
        ModelNotHere: there is none of that name.
    """
    if name.startswith(("http://", "https://")):
        address, _, model = name.partition("#")
        return {"generators": ["openai"], "openai": {"base_url": address, "model": model}}
    given = Path(os.path.expanduser(name))
    found = given.absolute() if given.exists() else cache.find(name)
    if found is None:
        raise ModelNotHere(name=name, folder=cache.cache_folder())
    if found.is_dir():
        return {"generators": ["kernelllm"], "kernelllm": {"model": str(found)}}
    return {"generators": ["llama-cpp"], "llama_cpp": {"model": str(found)}}


def print_answers(task: Task) -> None:
    """Every answer as it came, with what became of it."""
    from rich.console import Console
    from rich.rule import Rule
    from rich.syntax import Syntax

    console = Console(highlight=False)
    for number, entry in enumerate(task.report.candidates if task.report else [], 1):
        if not entry.candidate.answer or entry.candidate.narrowed:
            continue
        console.print(Rule(f"answer {number} · {entry.candidate.note}", align="left"))
        console.print(Syntax(entry.candidate.answer.strip(), "markdown", word_wrap=True, background_color="default"))
        verdict = entry.verdict
        where = f" (line {verdict.line})" if verdict.line else ""
        reason = f": {adapted(verdict.reason)}" if verdict.reason else ""
        console.print(f"→ {verdict.status}{where if reason else ''}{reason}", markup=False)
