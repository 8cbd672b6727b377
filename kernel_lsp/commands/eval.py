"""``kernel-lsp eval SUITE FOLDER…``: every problem of a suite, its records and scores."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_lsp import __version__, errors, generators, schema
from kernel_lsp.commands import html
from kernel_lsp.commands.eval_progress import Bar
from kernel_lsp.commands.run_jobs import INTERRUPTED, WANTED, comma_separated, given, print_json, refuse
from kernel_lsp.commands.wrapping import say, table_width
from kernel_lsp.evaluation import ray_executor, results_file, runner, stand_ins
from kernel_lsp.evaluation import records as data
from kernel_lsp.evaluation.lane import Plan
from kernel_lsp.evaluation.record_of_job import STATUSES
from kernel_lsp.evaluation.results_file import ResultsFile
from kernel_lsp.settings import Settings, load
from kernel_lsp.suites import folder, kernelbench, selection
from kernel_lsp.suites.found import Found

SUITES = {"kernelbench": kernelbench.read, "folder": folder.read}

_COMPARED = (
    "seconds",
    "generators",
    "samples",
    "baselines",
    "precision",
    "keep_packed_weights",
)  # of a header: records made with others do not compare


@dataclass
class Evaluation:
    """What the command line asks for."""

    found: list[Found]
    plan: Plan
    results: Path
    earlier: list[results_file.Contents]  # of the files of --resume
    retry: set[str]
    header: dict[str, Any]


def run(options: Any) -> int:
    """Evaluate; 0 when it ran to its end whatever the verdicts, 2 when it could not, 130 when interrupted."""
    try:
        asked = _asked(options)
        with ResultsFile(asked.results, asked.header) as file:
            return _run(asked, file, options)
    except errors.UserError as error:
        return refuse(error, options.json)


def _asked(options: Any) -> Evaluation:
    """What can be wrong is found out before anything is run.

    Raises:
        UserError: the first thing that is wrong.
    """
    for error in folder.left_out(options.folders) if options.suite == folder.SUITE else ():
        say(f"Left out: {error}")
    found = SUITES[options.suite](options.folders)
    if options.suite == "kernelbench":
        found = selection.select(found, options.level, options.problem)
    further = (
        {"baselines": [] if options.baseline == "none" else comma_separated(options.baseline)}
        if options.baseline
        else {}
    )
    elsewhere = stand_ins.read(options.stand_ins, options.mode) if options.stand_ins else {}
    mark = stand_ins.mark(options.stand_ins) if options.stand_ins else ""
    changed = {name: value for name, value in given(options, further).items() if value is not None}
    plan = Plan(options.mode, changed, elsewhere, mark)
    settings = _settings(found, plan)
    for name in generators.chosen(settings):
        generators.find(name)
    retry = set(comma_separated(options.retry or ""))
    if unknown := sorted(retry - set(STATUSES)):
        raise errors.StatusUnknown(status=unknown[0], known=", ".join(STATUSES))
    resumed = options.resume or []
    results = options.results or (resumed[0] if resumed else Path(_new_name(options)))
    if os.path.lexists(results) and not any(os.path.realpath(results) == os.path.realpath(one) for one in resumed):
        raise errors.ResultsExist(path=str(results))
    _check_pages(options, results, resumed)
    # A first file that is not there is begun, so that one command serves for a machine that is taken away and comes back.
    earlier = [results_file.read(one) for one in resumed if one != results or os.path.lexists(one)]
    header = {
        "suite": options.suite,
        "mode": options.mode,
        "seconds": settings.seconds,
        "generators": settings.generators,
        "samples": settings.samples,
        "baselines": settings.baselines,
        "precision": settings.precision,
        "keep_packed_weights": settings.keep_packed_weights,
        "device": settings.device,
        "kernel-lsp": __version__,
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    return Evaluation(found, plan, results, earlier, retry, header)


def _check_pages(options: Any, results: Path, resumed: Sequence[Path]) -> None:
    """That each page can be written, and that none would replace what the command reads or writes besides.

    Raises:
        ReportNotWritten: one cannot, or would.
    """
    taken = {os.path.realpath(one): "it is a results file" for one in [results, *resumed]}
    if options.stand_ins is not None:
        taken[os.path.realpath(options.stand_ins)] = "it is the file of stand-ins"
    pages = [page for page in (options.markdown, options.html) if page is not None]
    for page in pages:
        place = os.path.realpath(page)
        if place in taken:
            raise errors.ReportNotWritten(path=str(page), detail=taken[place])
        taken[place] = "it is another page of this command"
    for page in pages:
        html.check(page)


def _settings(found: Sequence[Found], plan: Plan) -> Settings:
    """The first problem's settings; what is wrong with any is said once.

    Raises:
        SettingInvalid: an option of the command line has a value that does not go.
    """
    said: dict[str, None] = {}
    for one in found:
        _, problems = load(one.file, cli=plan.settings)
        for problem in problems:
            if problem.path == "command line":
                raise problem
            said[str(problem)] = None
    for words in said:
        say(words)
    return load(found[0].file, cli=plan.settings)[0]


def _new_name(options: Any) -> str:
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    return f"eval-{options.suite}-{options.mode}-{stamp}.jsonl"


def _run(asked: Evaluation, file: ResultsFile, options: Any) -> int:
    _say_differences(asked)
    own = results_file.merged(file.contents.records)
    known = results_file.merged(record for one in [file.contents, *asked.earlier] for record in one.records)
    for key, record in known.items():  # the file written to holds everything in the end
        if key not in own or own[key].at != record.at:
            file.append(record)

    def key_of(one: Found) -> tuple[str, str, str]:
        return one.problem.suite, one.problem.id, asked.plan.mode

    def is_done(one: Found) -> bool:
        record = known.get(key_of(one))
        return record is not None and record.status not in asked.retry | {data.INTERRUPTED}

    todo = [one for one in asked.found if not is_done(one)]
    say(_plan_in_words(asked, todo))
    completed = True
    if todo:
        bar = Bar(len(todo))

        def on_record(record: data.Record) -> None:
            file.append(record)
            known[record.key] = record
            bar.ended(record)

        execute = ray_executor.run if options.executor == "ray" else runner.run
        try:
            with bar.bar:
                completed = execute(todo, asked.plan, options.workers, on_record, bar.progress)
        except errors.UserError:
            _say_resume(asked)
            raise
        except KeyboardInterrupt:  # before the executor heeds it, or after
            completed = False
    records = [known[key_of(one)] for one in asked.found if key_of(one) in known]
    files = {key_of(one): one.file for one in asked.found}
    present(records, options, lambda record: files.get(record.key))
    if not completed:
        say("interrupted")
        _say_resume(asked)
        return INTERRUPTED
    return WANTED


def present(records: list[data.Record], options: Any, file_of: Callable[[data.Record], Path | None]) -> None:
    """The scores: as JSON or tables on standard output, and as the files asked for.

    Raises:
        ReportNotWritten: one of the files cannot be written.
    """
    from kernel_lsp.evaluation import markdown, scores, tables

    result = scores.score(records)
    if options.json:
        print_json({"evaluation": schema.to_json(result), "records": [record.to_json() for record in records]})
    else:
        from rich.console import Console

        tables.print_scores(result, records, Console(width=table_width(sys.stdout)))
    if options.markdown is not None:
        html.write_text(options.markdown, markdown.text(result, records))
    if options.html is not None:
        from kernel_lsp.report_page import evaluation as page

        def facts_for(record: data.Record) -> html.Facts:
            facts = page.facts_of(record)
            file = file_of(record)
            if file is not None:
                html.add_module(facts, file)
                facts.module_path = record.problem.path
            return facts

        with html.user_error(options.html):
            page.write(options.html, result, records, facts_for)


def _plan_in_words(asked: Evaluation, todo: Sequence[Found]) -> str:
    total, done = len(asked.found), len(asked.found) - len(todo)
    words = f"{total} problem{'s' if total != 1 else ''}"
    if done:
        words += f", {done} of them in the results already"
    return f"{words}; results go to {asked.results}"


def _say_differences(asked: Evaluation) -> None:
    for contents in asked.earlier:
        changed = [
            f"{name} {contents.header[name]} (now {asked.header[name]})"
            for name in _COMPARED
            if name in contents.header and contents.header[name] != asked.header[name]
        ]
        if changed:
            say(f"earlier results were made with {', '.join(changed)}; they stay as they are")
        if contents.cut:
            say(f"{contents.path}: its last line was cut off; that problem is run again")
        if contents.damaged:
            lines = ", ".join(map(str, contents.damaged[:10]))
            say(f"earlier results are damaged at line {lines}; those problems are run again")


def _say_resume(asked: Evaluation) -> None:
    say(f"what is finished is kept; the same command with --resume {asked.results} goes on")
