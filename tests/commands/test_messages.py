"""Texts of the command line that do not depend on a worker."""

from __future__ import annotations

import errno
import os
import types
from pathlib import Path

import pytest

from kernel_lsp import kernel_file, schema
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
        ("", "{there} could not be written: no permission. Change the permissions, or set"),
        ("kernels", "{there}/kernels could not be written: no permission in {there}. Change the"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, says: str
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    with pytest.raises(FileNotWritten) as caught:
        preflight.check_folder(tmp_path / folder)
    assert says.format(there=tmp_path) in str(caught.value)


def test_a_file_system_that_is_mounted_read_only_is_no_lack_of_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("os.statvfs", lambda _: types.SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(FileNotWritten) as caught:
        preflight.check_folder(tmp_path / "kernels")
    assert f"kernels could not be written: {tmp_path} is on a read-only file system. Mount the" in str(caught.value)
    assert "permission" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EROFS, "Read-only file system. Mount the file system for writing, or set"),
        (errno.ENOSPC, "No space left on device. Free space, or set"),
        (errno.EACCES, "Permission denied. Change the permissions, or set"),
        (errno.EIO, "Input/output error. Free space or change the permissions, or set"),
    ],
)
def test_what_helps_follows_from_what_the_system_says_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(FileNotWritten) as caught:
        kernel_file.write(tmp_path / "k.py", "", "a.py::A")
    assert remedy in str(caught.value)
