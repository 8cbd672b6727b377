"""The reason of a verdict is kept in neutral words; each surface says what to do in its own."""

from __future__ import annotations

import contextlib
import types
from pathlib import Path

import pytest

from kernel_lsp import claims, errors, schema
from kernel_lsp.checking.findings import checked_of
from kernel_lsp.commands.print_reports import print_reports
from kernel_lsp.commands.run_jobs import Task
from kernel_lsp.commands.watch_display import Row
from kernel_lsp.errors.surface import command_line
from kernel_lsp.jobs import device_requests
from kernel_lsp.report_page import Facts, page
from kernel_lsp.server.model.class_state import ClassState
from kernel_lsp.server.text.one_line import verdict_words

SETTING, OPTION = "Raise kernelLsp.seconds", "Raise --seconds"
REASON = f"the time was over in the check “odd sizes”. {SETTING} or use smaller example inputs."


class FakeRun:
    """A run whose worker gives one answer; ``error``: raised after a first verdict."""

    def __init__(self, verdict: schema.Verdict, error: errors.UserError | None = None) -> None:
        self.report = schema.Report(schema.Target("", "Net"))
        self.job = types.SimpleNamespace(number=0)
        self.recorded_shapes = self.looked_at = None
        self._verdict, self._error = schema.to_json(verdict), error

    async def ask_on_device(self, method: str, params: object, stage: str, on_event) -> dict:
        if self._error is not None:
            on_event("verdict", self._verdict)
            raise self._error
        return {"verdict": self._verdict}

    def tell(self, what: str) -> None:
        pass


def task() -> Task:
    report = schema.Report(schema.Target("", "Net"), why=REASON)
    report.candidates = [schema.Validated(schema.Candidate("", "synthesizer"), schema.Verdict("timeout", REASON))]
    return Task("net.py::Net", None, types.SimpleNamespace(report=report, state="done"), None)


async def validated(run: FakeRun) -> schema.Verdict:
    found = await device_requests.validate(run, schema.Candidate("", "g"), "none", lambda fraction: fraction)
    assert found is not None
    return found.verdict


async def test_what_is_kept_is_neutral_on_the_command_line_too() -> None:
    with command_line(["seconds"]):
        verdict = await validated(FakeRun(schema.Verdict("timeout", REASON)))
        assert verdict.reason == REASON
        assert claims.lines(verdict, None, None, "0", "2026-01-01")["reason"] == REASON


async def test_so_is_that_a_validation_did_not_come_to_an_end() -> None:
    unfinished = schema.Verdict("ok", limits=[f"{schema.STILL}float64"])
    with command_line(["seconds"]):
        error = errors.WorkerTimedOut(seconds=60, stage="validating a candidate")
        verdict = await validated(FakeRun(unfinished, error))
    assert verdict.status == "timeout" and SETTING in verdict.reason


def shown_in_a_table(capsys: pytest.CaptureFixture[str]) -> str:
    print_reports([task()])
    return capsys.readouterr().out


def shown_in_json(_: object) -> str:
    document = task().to_json()
    assert document["why"] == document["candidates"][0]["verdict"]["reason"]
    return document["why"]


def shown_on_the_page(_: object) -> str:
    return page(Facts.of_report(task().report))


def shown_by_watch(_: object) -> str:
    row = Row(None, "Net")
    row.take(task().report.candidates[0].verdict, None, None)
    return row.reason


def shown_by_check(_: object) -> str:
    return checked_of(Path("/none/net_triton.py"), task().report, None, ()).findings[0].message


SHOWN = [shown_in_a_table, shown_in_json, shown_on_the_page, shown_by_watch, shown_by_check]


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("options", [["seconds"], None])
def test_each_surface_says_its_own_words(capsys: pytest.CaptureFixture[str], shown, options: list[str] | None) -> None:
    """An option where a command runs, a setting in an editor, which writes pages, too."""
    with command_line(options) if options else contextlib.nullcontext():
        said = " ".join(shown(capsys).split())
    own, other = (OPTION, SETTING) if options else (SETTING, OPTION)
    assert own in said and other not in said


def test_the_editor_names_its_setting() -> None:
    assert SETTING in verdict_words("Net", ClassState(verdict=schema.Verdict("timeout", REASON)))
