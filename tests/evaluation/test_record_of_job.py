"""From a job to its record: the status, and what does not go into it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernel_lsp import errors, schema
from kernel_lsp.evaluation.outcomes import of
from kernel_lsp.evaluation.record_of_job import STATUSES, record_of, status_of
from kernel_lsp.evaluation.records import Record
from kernel_lsp.suites.problem import Problem

PROBLEM = Problem("kernelbench", "level1/1_P", "1_P", "level1/1_P.py", "Model", 1, 1)


def validated(status: schema.Status, source: str = "source") -> schema.Validated:
    candidate = schema.Candidate(source, "kernelllm", answer="whole answer")
    return schema.Validated(candidate, schema.Verdict(status, "" if status == "ok" else f"it is {status}"))


def report(*statuses: schema.Status, chosen: int | None = None) -> schema.Report:
    made = schema.Report(schema.Target("file:///home/somebody/x.py", "Model"), chosen=chosen)
    made.candidates = [validated(status, f"source {i}") for i, status in enumerate(statuses)]
    made.sources = [schema.Source("kernelllm", samples=5, not_validated=1, correct=2), schema.Source("synthesizer")]
    made.device = schema.Device("NVIDIA H100", "cuda", python="3.12", torch="2.13.0", triton="3.7.1", driver="570")
    return made


def test_a_kernel_that_is_correct() -> None:
    record = record_of(PROBLEM, "train", report("wrong", "slower", "ok", chosen=1), None, 1.23456)
    assert (record.status, record.reason, record.error, record.seconds) == ("ok", "", None, 1.235)
    assert record.samples == {"kernelllm": [4, 2]}
    assert record.versions["device"] == "NVIDIA H100" and record.versions["driver"] == "570"
    assert len(record.machine) == 8 and record.at.endswith("+00:00")
    kept = record.read_report()
    assert kept is not None and kept.target.uri == ""
    assert [entry.candidate.source for entry in kept.candidates] == ["", "source 1", ""]
    assert not any(entry.candidate.answer for entry in kept.candidates)
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_the_candidate_that_got_furthest_stands_for_the_problem() -> None:
    record = record_of(PROBLEM, "eval", report("rejected", "crashed", "wrong", "wrong"), None, 1.0)
    assert (record.status, record.reason) == ("wrong", "it is wrong")
    kept = record.read_report()
    assert kept is not None and [bool(entry.candidate.source) for entry in kept.candidates] == [
        False,
        False,
        True,
        False,
    ]


def test_the_report_given_stays_as_it_is() -> None:
    given = report("ok", chosen=0)
    record_of(PROBLEM, "eval", given, None, 1.0)
    assert given.candidates[0].candidate.answer and given.target.uri


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.NothingToLower(class_name="A", op="aten.sort"), "not-lowered"),
        (errors.NotWritable(class_name="A", detail="x"), "not-lowered"),
        (errors.NotExportable(class_name="A", detail="x"), "not-exportable"),
        (errors.WorkerDied(detail="killed by SIGSEGV"), "crashed"),
        (errors.WorkerTimedOut(seconds=1.0, stage="x"), "timeout"),
        (
            errors.GpuOutOfMemory(device="cuda:0", class_name="A", needed="9 GB", there="1 GB", detail="x"),
            "out-of-memory",
        ),
        (errors.ForwardFailed(class_name="A", detail="OutOfMemoryError: CUDA out of memory."), "out-of-memory"),
        (errors.ForwardFailed(class_name="A", detail="ValueError: no"), "failed"),
        (errors.DeviceMissing(class_name="A", device="cuda", detail="x"), "no-device"),
        (errors.ClassNotFound(class_name="Model", path="1_P.py"), "failed"),
        (errors.NoCandidates(class_name="A", detail="x"), "no-candidates"),
    ],
)
def test_statuses_of_errors(error: errors.UserError, status: str) -> None:
    assert status_of(error) == status and status in STATUSES
    record = record_of(PROBLEM, "eval", None, error, 1.0, {"python": "3.12", "torch": "2.13.0"})
    assert record.error == error.to_json() and record.reason == str(error)
    assert record.versions["torch"] == "2.13.0"


def test_no_place_of_this_machine_is_in_a_record(tmp_path: Path) -> None:
    error = errors.ImportFailed(path=str(tmp_path / "level1" / "1_P.py"), line=3, detail=f"no {Path.home() / 'x.so'}")
    made = report("ok", chosen=0)
    made.candidates[0].candidate.note = f"see '{tmp_path}/level1/1_P.py', {tmp_path.as_uri()}/x and {tmp_path}."
    record = record_of(PROBLEM, "eval", made, error, 1.0, None, tmp_path)
    text = json.dumps(record.to_json())
    assert str(tmp_path) not in text and str(Path.home()) + "/" not in text and "somebody" not in text
    assert record.reason.startswith("Importing level1/1_P.py failed at line 3: no ~/x.so")
    assert record.error and record.error["where"]["path"] == "level1/1_P.py"
    assert record.report and record.report["candidates"][0]["candidate"]["note"] == "see 'level1/1_P.py', x and .."


def test_only_whole_places_are_replaced_and_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/root"))
    text = "/root/x /rooted /data/root/y /root-2 (/root) '/root' file:///root/z /root: /root. /root.old -I/root/i"
    made = report("ok", chosen=0)
    made.candidates[0].candidate.source = made.candidates[0].candidate.note = text
    record = record_of(PROBLEM, "eval", made, None, 1.0)
    assert record.report is not None
    kept = record.report["candidates"][0]["candidate"]
    assert kept["note"] == "~/x /rooted /data/root/y /root-2 (~) '~' file://~/z ~: ~. /root.old -I~/i"
    assert kept["source"] == text


def test_status_and_report_are_of_the_same_candidate() -> None:
    record = record_of(PROBLEM, "eval", report("rejected", "slower", "wrong"), None, 1.0)
    kept = record.read_report()
    assert kept is not None and record.status == "ok"
    assert [bool(entry.candidate.source) for entry in kept.candidates] == [False, True, False]
    failed = of(record_of(PROBLEM, "eval", report("rejected", "cheating"), None, 1.0))
    assert (failed.status, failed.generator, failed.correct) == ("cheating", "kernelllm", False)


def test_nothing_at_all() -> None:
    record = record_of(PROBLEM, "eval", schema.Report(schema.Target("", "Model")), None, 1.0)
    assert record.status == "no-candidates"


@pytest.mark.parametrize(("precision", "words"), [("tf32", "TF32"), ("half", "half precision")])
def test_a_kernel_of_a_lower_precision_is_no_strict_result(precision: str, words: str) -> None:
    made = report("ok", chosen=0)
    made.candidates[0].verdict.held_to = precision
    record = record_of(PROBLEM, "eval", made, None, 1.0)
    reason = f"It is correct at {words}, which was asked for; that is not strict."
    assert (record.status, record.reason) == ("not-strict", reason)
    assert record.samples == {"kernelllm": [4, 0]}
    assert "not-strict" in STATUSES
