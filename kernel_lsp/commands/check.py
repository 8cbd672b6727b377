"""``kernel-lsp check [PATH…]``: validate every kernel under the paths, and say so in the format that CI reads.

Nothing of the project is written.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from kernel_lsp import atomic_write, schema
from kernel_lsp.checking import git
from kernel_lsp.checking.changes import changed_since
from kernel_lsp.checking.findings import checked_of
from kernel_lsp.checking.formats import github, junit, sarif
from kernel_lsp.checking.formats.places import shown
from kernel_lsp.checking.records import DEFAULT_FAIL_ON, Checked, Outcome
from kernel_lsp.commands import html
from kernel_lsp.commands.finding_lines import finding_lines
from kernel_lsp.commands.run_jobs import NOT_VALIDATED, Task, run_tasks, say_warnings, settings_from
from kernel_lsp.commands.targets import existing
from kernel_lsp.commands.validate import selected, task_for
from kernel_lsp.commands.wrapping import filled, say, width_of
from kernel_lsp.errors import ReportNotWritten, UserError

_FORMATS: dict[str, Callable[[Outcome], str]] = {"sarif": sarif.text, "junit": junit.text, "github": github.text}


def run(options: Any) -> int:
    """Validate; exit status as in cli.py."""
    outcome = Outcome(git.find_root(Path.cwd()) or Path.cwd(), changed_since=options.changed_since)
    tasks: list[Task] = []
    try:
        html.check_all(options.output, options.svg)
        files = _selected(options, outcome)
        settings_for = settings_from(options)
        tasks = [task_for(file, write=False) for file in files]
        completed = run_tasks(tasks, settings_for) if tasks else True
    except UserError as error:
        return _refused(error, options, outcome)
    outcome.interrupted = not completed
    fail_on = options.fail_on or DEFAULT_FAIL_ON
    for file, task in zip(files, tasks, strict=True):
        outcome.checked.append(checked_of(file, task.report, task.error, fail_on))
    status = _show(options, outcome, tasks)
    say_warnings(tasks)
    if outcome.interrupted:
        say("cancelled")
    return status


def _selected(options: Any, outcome: Outcome) -> list[Path]:
    """The kernel files to validate, each once, in order."""
    files = selected([existing(name) for name in options.targets or ["."]])
    if options.changed_since is None:
        return files
    changed = changed_since(files, options.changed_since or "")
    outcome.unchanged = len(files) - len(changed)
    return changed


def _refused(error: UserError, options: Any, outcome: Outcome) -> int:
    """Say that nothing was begun, and why, in the format that was asked for too."""
    outcome.error = str(error)
    say(error)
    if options.format == "json":
        _emit(_json({"error": error.to_json()}), None if isinstance(error, ReportNotWritten) else options.output)
    elif options.format in _FORMATS:
        _emit(_FORMATS[options.format](outcome), None if isinstance(error, ReportNotWritten) else options.output)
    return NOT_VALIDATED


def _show(options: Any, outcome: Outcome, tasks: list[Task]) -> int:
    """Write the result where it was asked for; returns the exit status."""
    if options.format == "text":
        document = _text(outcome, tasks, None) if options.output is not None else ""
    elif options.format == "json":
        document = _json(_document(outcome, tasks))
    else:
        document = _FORMATS[options.format](outcome)
    if options.format == "text" or options.output is not None:
        _print_text(outcome, tasks, options.svg)
        if options.output is None:
            return outcome.exit_status()
    try:
        _emit(document, options.output)
    except ReportNotWritten as error:  # the disk is full by now; the result was shown
        say(error)
        return NOT_VALIDATED
    return outcome.exit_status()


def _emit(document: str, output: Path | None) -> None:
    """Write a document to a file or to standard output, as UTF-8 whatever the terminal's encoding.

    Raises:
        ReportNotWritten: the file cannot be written.
    """
    data = document.encode("utf-8", "backslashreplace")
    if output is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        with html.user_error(output):
            atomic_write.write(output, data)


def _text(outcome: Outcome, tasks: list[Task], picture: Path | None) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        _print_text(outcome, tasks, picture)
    return text.getvalue()


def _print_text(outcome: Outcome, tasks: list[Task], picture: Path | None) -> None:
    """The table, what it does not say, and the counts."""
    from kernel_lsp.commands.print_reports import print_reports
    from kernel_lsp.commands.report_lines import missing

    if tasks:
        print_reports(tasks, picture, more="--format json", files=len(outcome.checked) > 1)
    for line in finding_lines(outcome.checked, outcome.root):
        print(line)
    told = [text.rstrip(".") for text in missing(tasks)]  # below the table
    for why in outcome.not_measured:
        if why not in told:
            print(filled(f"Regressions: not measured ({why}).", width_of(sys.stdout)))
    if outcome.checked or outcome.unchanged:
        print(filled(_summary(outcome, told), width_of(sys.stdout)))


def _summary(outcome: Outcome, told: Collection[str]) -> str:
    """One line, such as ``3 kernels checked: 1 kernel-wrong, 1 kernel-stale (does not fail). 4 did not change since main.``.

    A single kernel is named by its file. ``told``: why something was not measured, as it was printed before.
    """
    counts: dict[tuple[str, bool], int] = {}
    for one in outcome.checked:
        for finding in one.findings:
            counts[finding.code, finding.fails] = counts.get((finding.code, finding.fails), 0) + 1
    found = ", ".join(f"{count} {code}{'' if fails else ' (does not fail)'}" for (code, fails), count in counts.items())
    number = len(outcome.checked)
    if not number:
        return f"No kernel changed since {outcome.changed_since}; {outcome.unchanged} did not."
    what = os.path.relpath(outcome.checked[0].kernel) if number == 1 else f"{number} kernels checked"
    text = f"{what}: {found or 'no problems'}"
    unmeasured = sum(one.not_measured in told for one in outcome.checked)
    if unmeasured:
        text += f"; regressions not measured{'' if unmeasured == number else f' for {unmeasured}'}"
    text += "."
    if outcome.changed_since is not None:
        text += f" {outcome.unchanged} did not change since {outcome.changed_since}."
    return text


def _document(outcome: Outcome, tasks: list[Task]) -> dict[str, Any]:
    reports = [
        task.to_json() | {"check": _check(one, outcome.root)} for task, one in zip(tasks, outcome.checked, strict=True)
    ]
    return {
        "reports": reports,
        "unchanged": outcome.unchanged,
        "changed_since": outcome.changed_since,
        "exit_status": outcome.exit_status(),
    }


def _check(one: Checked, root: Path) -> dict[str, Any]:
    path, line = one.place
    return {
        "kernel": shown(one.kernel, root),
        "class_name": one.class_name,
        "file": shown(path, root),
        "line": line,
        "stale": one.stale,
        "regression": schema.to_json(one.regression) if one.regression is not None else None,
        "regression_not_measured": one.not_measured,
        "findings": [schema.to_json(finding) for finding in one.findings],
    }


def _json(document: Any) -> str:
    return json.dumps(schema.finite(document), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
