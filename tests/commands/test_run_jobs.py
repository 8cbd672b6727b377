"""How the jobs of a command are counted and what is said where the user interrupts them."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from kernel_lsp import schema
from kernel_lsp.commands.print_reports import print_reports
from kernel_lsp.commands.run_jobs import Bar, Task
from kernel_lsp.errors import Cancelled, NoExampleInputs, NoModuleClass, UserError
from kernel_lsp.jobs import Job


def job(name: str, state: str, error: UserError | None = None, seconds: float = 0.0) -> Job:
    about = schema.Target(f"file:///{name}.py", name)
    made = Job(f"generate-{name}", "generate", about, Path(f"/{name}.py"), error=error)
    made.state, made.report = state, schema.Report(about)  # type: ignore[assignment]
    made.report.seconds["report"] = seconds
    return made


def test_every_job_of_several_is_counted_without_a_gap(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar(4)
    bar.finished(job("Gate", "failed", NoExampleInputs(path="a.py", class_name="Gate")))
    bar.count("notes.txt", "no kernel", NoModuleClass(path="notes.txt"))
    bar.finished(job("Net", "failed", UserError(message="it does not run"), seconds=2.0))
    bar.finished(job("Last", "cancelled", Cancelled(), seconds=1.5))
    assert capsys.readouterr().err.splitlines() == [
        "[1/4] Gate: no example inputs",
        "[2/4] notes.txt: no kernel",
        "[3/4] Net: no kernel (2.0 s)",
        "[4/4] Last: cancelled (1.5 s)",
    ]


def test_classes_before_whose_turn_the_user_interrupted_are_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    began = types.SimpleNamespace(report=schema.Report(schema.Target("", "A")), state="cancelled")
    tasks = [Task("a.py::A", None, began, Cancelled()), Task("b.py::B", None), Task("c.py::C", None)]
    print_reports(tasks)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [line[1:3] for line in lines if line[0] in "ABC"] == [["cancelled", "–"], ["not", "run"], ["not", "run"]]
    assert ["Not", "run:", "B;", "C."] in lines and ["✗", "A:", "Cancelled."] in lines
    assert not [line for line in lines if line[:2] in (["✗", "B:"], ["✗", "C:"])]
    assert tasks[1].to_json()["error"]["code"] == "Cancelled"
