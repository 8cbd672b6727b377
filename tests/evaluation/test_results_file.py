"""Results files: what a crash leaves of one, several of one run, and files that are no results file."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from kernel_lsp import errors
from kernel_lsp.evaluation import results_file
from kernel_lsp.evaluation.records import FORMAT, Record
from kernel_lsp.evaluation.results_file import ResultsFile
from kernel_lsp.suites.problem import Problem


def record(number: int, status: str = "ok", at: str = "2026-01-01T00:00:00.000+00:00", mode: str = "eval") -> Record:
    problem = Problem("kernelbench", f"level1/{number}_P", f"{number}_P", "", "Model", 1, number)
    return Record(problem, mode, status, at=at, samples={"synthesizer": [1, 1]}, report={"why": "ünïcödé\n"})


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, {"suite": "kernelbench"}) as file:
        file.append(record(1))
        file.append(record(2, "wrong"))
    contents = results_file.read(path)
    assert contents.header == {"kernel-lsp-eval": FORMAT, "suite": "kernelbench"}
    assert contents.records == [record(1), record(2, "wrong")] and contents.damaged == []
    assert len(path.read_bytes().splitlines()) == 3


def test_numbers_that_json_does_not_have_become_null(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, {}) as file:
        one = record(1)
        one.report = {"error": float("nan"), "times": [float("inf"), 1.0]}
        file.append(one)
    assert results_file.read(path).records[0].report == {"error": None, "times": [None, 1.0]}
    assert b"NaN" not in path.read_bytes()


def test_a_last_line_that_lacks_its_newline_alone_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, {}) as file:
        file.append(record(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    contents = results_file.read(path)
    assert contents.records == [record(1)] and contents.cut == 0 and path.read_bytes() == whole[:-1]
    with ResultsFile(path, {}) as file:
        assert path.read_bytes() == whole
        file.append(record(2))
    assert results_file.read(path).records == [record(1), record(2)]


def test_a_header_that_lacks_its_newline_is_one(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"kernel-lsp-eval": FORMAT + 1}))
    with pytest.raises(errors.ResultsOfAnotherVersion), ResultsFile(path, {}):
        pass
    path.write_text(json.dumps({"kernel-lsp-eval": FORMAT, "suite": "x"}))
    with ResultsFile(path, {"suite": "y"}) as file:
        file.append(record(1))
    contents = results_file.read(path)
    assert contents.header["suite"] == "x" and contents.records == [record(1)]


def test_half_a_line_is_left_where_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, {}) as file:
        file.append(record(1))
        file.append(record(2))
    path.write_bytes(path.read_bytes()[:-9])
    before = path.read_bytes()
    with ResultsFile(path, {}) as file:
        assert file.contents.cut > 0
    assert path.read_bytes() == before


WRONG = [
    {"seconds": None},
    {"seconds": "1"},
    {"seconds": float("nan")},
    {"status": 5},
    {"reason": None},
    {"samples": [1]},
    {"samples": {"a": [1]}},
    {"samples": {"a": [1, None]}},
    {"versions": None},
    {"versions": {"torch": 2}},
    {"error": "x"},
    {"report": [1]},
    {"problem": None},
    {"problem": "x"},
    {"problem": {"suite": 1, "id": "a", "name": "a", "path": "", "class_name": "M"}},
    {"problem": {"suite": "s", "id": "a", "name": "a", "path": "", "class_name": "M", "level": "1"}},
]


@pytest.mark.parametrize("wrong", [None, 1, "x", [], *WRONG])
def test_json_of_wrong_types_is_a_damaged_line(tmp_path: Path, wrong: object) -> None:
    path = tmp_path / "r.jsonl"
    line = record(1).to_json() | wrong if isinstance(wrong, dict) else wrong
    path.write_text(json.dumps({"kernel-lsp-eval": FORMAT}) + "\n" + json.dumps(line) + "\n")
    contents = results_file.read(path)
    assert contents.records == [] and contents.damaged == [2]


@pytest.mark.parametrize("cut", [2, 7, 60, 200])
def test_half_a_line_at_the_end_is_cut_away_before_the_next(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, {}) as file:
        file.append(record(1))
        file.append(record(2))
    path.write_bytes(path.read_bytes()[:-cut])
    assert results_file.read(path).records == [record(1)]
    with ResultsFile(path, {}) as file:
        assert file.contents.records == [record(1)]
        file.append(record(3))
    assert results_file.read(path).records == [record(1), record(3)]


@pytest.mark.parametrize("length", [0, 1, 10, 20, 21])
def test_a_file_that_was_cut_in_its_header_is_begun_anew(tmp_path: Path, length: int) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(json.dumps({"kernel-lsp-eval": FORMAT, "suite": "x"}).encode()[:length])
    assert results_file.read(path).records == []
    with ResultsFile(path, {"suite": "y"}) as file:
        file.append(record(1))
    assert results_file.read(path).header["suite"] == "y"


def test_a_damaged_line_costs_that_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, {}) as file:
        file.append(record(1))
    with path.open("ab") as raw:
        raw.write(b'\x00\x00\x00\n[1]\n{"mode": "eval"}\n')
    with ResultsFile(path, {}) as file:
        file.append(record(2))
    contents = results_file.read(path)
    assert contents.records == [record(1), record(2)] and contents.damaged == [3, 4, 5]


def test_fields_of_a_newer_version_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    line = record(1).to_json() | {"new": 1}
    path.write_text(json.dumps({"kernel-lsp-eval": FORMAT}) + "\n" + json.dumps(line) + "\n")
    assert results_file.read(path).records == [record(1)]


@pytest.mark.parametrize("text", ["hello", "hello\n", "[1, 2]\n", '{"a": 1}\n', "\n", "import torch\nx = 1\n"])
def test_a_file_of_another_kind_is_refused_and_left(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(errors.NotAResultsFile):
        results_file.read(path)
    with pytest.raises(errors.NotAResultsFile), ResultsFile(path, {}):
        pass
    assert path.read_text() == text


def test_another_format_is_refused_and_left(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"kernel-lsp-eval": FORMAT + 1}) + "\n")
    with pytest.raises(errors.ResultsOfAnotherVersion, match=str(FORMAT + 1)), ResultsFile(path, {}):
        pass
    with pytest.raises(errors.ResultsMissing):
        results_file.read(tmp_path / "none")


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, {}) as file:
        file.append(record(1))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(_try, (str(path),)) == "ResultsInUse"
        assert results_file.read(path).records == [record(1)]  # reading takes no lock
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_try, (str(path),)) == ""


def _try(path: str) -> str:
    try:
        with ResultsFile(Path(path), {}):
            return ""
    except errors.UserError as error:
        return type(error).__name__


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "r.jsonl", tmp_path):
        with pytest.raises(errors.ResultsNotWritten), ResultsFile(path, {}):
            pass


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, {}) as file:
        file.append(record(1))
        whole = path.read_bytes()
        write = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:40]))
        with pytest.raises(errors.ResultsNotWritten, match="No space left"):
            file.append(record(2))
        monkeypatch.undo()
        assert path.read_bytes() == whole
        file.append(record(3))
    assert results_file.read(path).records == [record(1), record(3)]


def test_nothing_is_left_of_an_evaluation_that_never_began(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, {}):
        assert path.exists()
    assert not path.exists()


def test_the_latest_record_of_each_problem_and_mode_counts() -> None:
    old, new = record(1, "wrong", "2026-01-01T00:00:00.000+00:00"), record(1, "ok", "2026-01-02T00:00:00.000+00:00")
    training = record(1, "failed", mode="train")
    broken = record(1, "interrupted", "2026-01-03T00:00:00.000+00:00")
    merged = results_file.merged([new, old, training, broken])
    assert list(merged.values()) == [new, training]
    assert list(results_file.merged([broken, old]).values()) == [old]
    assert list(results_file.merged([broken]).values()) == [broken]
