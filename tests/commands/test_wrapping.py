"""Lines that fit the terminal, or what COLUMNS says; what is piped stays in one line."""

from __future__ import annotations

import dataclasses
import os
import pty
from pathlib import Path

import pytest

from kernel_lsp import cli, schema
from kernel_lsp.commands import doctor, record_table
from kernel_lsp.commands.print_reports import print_reports
from kernel_lsp.commands.run_jobs import Task
from kernel_lsp.commands.wrapping import filled, say, width_of
from kernel_lsp.jobs import Job
from kernel_lsp.recording.records import ClassRecord, Run
from tests.store.made import DEVICE, found

LONG = "a sentence of many words that goes on and on, " * 8


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_words_are_kept_whole() -> None:
    text = filled("see /a/path-with-hyphens/that-is-longer-than-the-line/file.py for more\n  and more", 30)
    assert "/a/path-with-hyphens/that-is-longer-than-the-line/file.py" in text.splitlines()
    assert filled(LONG, None) == LONG


def test_the_width_is_that_of_columns_else_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream, os.fdopen(ours, "rb"):
        import fcntl
        import struct
        import termios

        fcntl.ioctl(stream.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", 40, 70, 0, 0))
        assert width_of(stream) == 70
        monkeypatch.setenv("COLUMNS", "90")
        assert width_of(stream) == 90
    with open(os.devnull, "w") as stream:
        assert width_of(stream) == 90
        monkeypatch.delenv("COLUMNS")
        assert width_of(stream) is None


@pytest.mark.parametrize("columns", ["80", ""])
def test_an_error_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    say(LONG)
    lines = lines_of(capsys.readouterr().err)
    assert lines[0].startswith("kernel-lsp: a sentence")
    assert (max(map(len, lines)) <= 80) if columns else len(lines) == 1


@pytest.mark.parametrize("columns", [80, None])
def test_the_doctor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int | None) -> None:
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
    doctor._print([doctor.Finding("disk", "missing", LONG, LONG)])
    lines = lines_of(capsys.readouterr().out)
    assert lines[0].startswith("✗ disk: a sentence")
    assert (max(map(len, lines)) <= 80 and lines[1].startswith("  ")) if columns else len(lines) == 2


def test_what_was_recorded(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = Run("python train.py", "train.py", str(tmp_path), at="2026-01-01T00:00:00+00:00", status=0)
    run.classes.append(ClassRecord("A" * 30, "model", str(tmp_path / "model.py"), calls=3))
    record_table.print_run(run)
    assert max(map(len, lines_of(capsys.readouterr().err))) <= 80


def test_the_text_beside_a_picture(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    target = schema.Target("file:///a.py", "Norm")
    verdict = dataclasses.replace(found().verdict, limits=[LONG], mode="interpreter")
    candidate = schema.Candidate("", "synthesizer", "3 of 3 ops")
    report = schema.Report(target, device=DEVICE, candidates=[schema.Validated(candidate, verdict)], chosen=0)
    task = Task("a.py::Norm", None, Job("1", "generate", target, tmp_path / "a.py", report=report))
    print_reports([task], tmp_path / "table.svg")
    assert max(map(len, lines_of(capsys.readouterr().out))) <= 80
    assert "Norm" in (tmp_path / "table.svg").read_text()


def test_a_command_that_refuses(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.main(["generate", f"{'nowhere/' * 5}model.py::Norm"]) == 2
    lines = lines_of(capsys.readouterr().err)
    assert len(lines) > 1 and max(map(len, lines)) <= 60
