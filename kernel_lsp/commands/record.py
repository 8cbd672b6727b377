"""``kernel-lsp record [--class NAME]… [--output FILE] -- COMMAND…``."""

from __future__ import annotations

import datetime
import shlex
import tempfile
import time
from pathlib import Path
from typing import Any

from kernel_lsp import schema
from kernel_lsp.commands.run_jobs import print_json, refuse
from kernel_lsp.commands.wrapping import say
from kernel_lsp.errors import NoCommandGiven, NothingRecorded, RecordingNotWritten, UserError
from kernel_lsp.recording import files, launching, merging
from kernel_lsp.recording.records import Run


def run(options: Any) -> int:
    """Run the command, keep what was seen, and print it. The exit status is the command's."""
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        return refuse(NoCommandGiven(), options.json)
    if options.output is not None and not options.output.parent.is_dir():
        detail = f"there is no folder {options.output.parent}"
        return refuse(RecordingNotWritten(path=str(options.output), detail=detail), options.json)
    root = files.project_of(Path.cwd())
    with tempfile.TemporaryDirectory(prefix="kernel-lsp-record-") as name:
        folder = Path(name)
        began = time.monotonic()
        try:
            status = launching.run(command, launching.environment(folder, root, options.classes), quiet=options.json)
        except UserError as error:
            return refuse(error, options.json)
        found = Run(shlex.join(command), launching.script_of(command), str(root), at=_now(), status=status)
        found.seconds = round(time.monotonic() - began, 3)
        merging.fill(found, merging.read_parts(folder))
        ran_python = (folder / "seen").exists()
    problem = (
        NothingRecorded(command=found.command, detail=_why_nothing(found, ran_python)) if not found.classes else None
    )
    warnings = _keep(found, options.output)
    if options.json:
        print_json(schema.to_json(found) | {"error": problem.to_json() if problem else None})
    elif problem is None:
        from kernel_lsp.commands.record_table import print_run

        print_run(found)
    for said in [*([problem] if problem else []), *warnings]:
        say(said)
    return status


def _keep(found: Run, output: Path | None) -> list[UserError]:
    """Keep the run where there is something in it; what went wrong with that."""
    wrong: list[UserError] = []
    if output is not None:
        try:
            files.write(found, output)
        except RecordingNotWritten as error:
            wrong.append(error)
    if found.classes:
        try:
            files.keep(found, files.default_base())
        except RecordingNotWritten as error:
            wrong.append(error)
    return wrong


def _why_nothing(found: Run, ran_python: bool) -> str:
    if not ran_python:
        return "it started no Python that reads PYTHONPATH (python -I and -E do not). Start Python without these."
    if not found.processes:
        return "no module was called, or torch was not imported. Name the command that trains or runs the model."
    if found.compiled:
        return (
            "its modules ran inside compiled functions only. Record it once without torch.compile, or compile the "
            "module itself."
        )
    return (
        f"it called no class that is defined in a file under {found.root}. Start it from the project's folder, or name "
        "a class of a library with --class."
    )


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
