"""Texts of the command line that do not depend on a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp import schema
from kernel_lsp.checking.records import Checked, Outcome
from kernel_lsp.commands import check, preflight
from kernel_lsp.commands.run_jobs import Task, say_warnings
from kernel_lsp.errors import FileNotWritten, surface


def test_what_regressions_were_not_measured_for_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = Outcome(tmp_path)
    for why in ("no CUDA GPU here", "no CUDA GPU here: torch is built without CUDA", "the time was over"):
        outcome.checked.append(Checked(tmp_path / "a.py", not_measured=why))
    monkeypatch.setattr(
        "kernel_lsp.commands.report_lines.missing", lambda _: [f"{one.not_measured}." for one in outcome.checked[:2]]
    )
    check._print_text(outcome, [], None)
    assert capsys.readouterr().out.splitlines() == [
        "Regressions: not measured (the time was over).",
        "3 kernels checked: no problems; regressions not measured for 2.",
    ]


def test_a_warning_names_the_option_of_the_command_that_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = schema.Report(schema.Target("a.py", "Net"), warnings=["The time was over. Raise kernelLsp.seconds."])
    monkeypatch.setattr(Task, "report", report)
    task = Task("a.py::Net", None)
    with surface.command_line(["seconds"]):
        say_warnings([task, task])
        assert task.to_json()["warnings"] == ["The time was over. Raise --seconds."]
    assert capsys.readouterr().err.splitlines() == ["kernel-lsp: warning: The time was over. Raise --seconds."]


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        ("", "{there} could not be written: no permission. Free"),
        ("kernels", "{there}/kernels could not be written: no permission in {there}. Free"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, says: str
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    with pytest.raises(FileNotWritten) as caught:
        preflight.check_folder(tmp_path / folder)
    assert says.format(there=tmp_path) in str(caught.value)
