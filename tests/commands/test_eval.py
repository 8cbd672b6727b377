"""``kernel-lsp eval``: what it refuses, what it runs again, and that it comes through whatever the problems do."""

from __future__ import annotations

import json
import signal
import subprocess
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp import cli, errors
from kernel_lsp.commands import eval as command
from kernel_lsp.commands import eval_progress
from kernel_lsp.evaluation import results_file
from kernel_lsp.evaluation.records import Record
from kernel_lsp.suites.found import Found
from tests import nursery

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
    import os, signal, time
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            {body}

    def get_inputs():
        return [torch.randn(4, 8)]
"""


def write(file: Path, body: str, **values: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(MODULE).format(body=body.format(**values)))


class Executor:
    """Stands in for ``runner.run``: every problem ends at once."""

    def __init__(self) -> None:
        self.status = "ok"
        self.ran: list[str] = []
        self.stop_after: int | None = None  # then the user interrupts
        self.error: errors.UserError | None = None
        self.plan: Any = None

    def __call__(self, problems: Sequence[Found], plan: Any, workers: Any, on_record: Any, on_progress: Any) -> bool:
        self.ran, self.plan = [], plan
        for found in problems:
            if self.stop_after == len(self.ran):
                if self.error:
                    raise self.error
                return False
            on_progress(found.problem, "Validating", 50)
            self.ran.append(found.problem.name)
            stamp = f"2026-01-01T00:00:00.{time.monotonic_ns()}"
            on_record(Record(found.problem, plan.mode, self.status, at=stamp))
        return True


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Executor:
    made = Executor()
    monkeypatch.setattr(command.runner, "run", made)
    return made


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[list[Record]]:
    calls: list[list[Record]] = []
    monkeypatch.setattr(command, "present", lambda records, options, file_of: calls.append(records))
    return calls


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name in ("1_One", "2_Two", "3_Three"):
        write(tmp_path / "bench" / "level1" / f"{name}.py", "return x")
    write(tmp_path / "bench" / "level2" / "1_Other.py", "return x")
    return tmp_path / "bench"


@pytest.fixture
def evaluate(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: cli.main(["eval", "kernelbench", str(suite), *map(str, arguments)])


def test_what_is_there_is_not_run_again(evaluate, executor, shown, tmp_path, capsys) -> None:
    assert evaluate("--results", "r.jsonl", "--level", "1") == 0
    assert executor.ran == ["1_One", "2_Two", "3_Three"]
    assert evaluate("--resume", "r.jsonl") == 0
    assert executor.ran == ["1_Other"] and [one.problem.name for one in shown[-1]] == [
        "1_One",
        "2_Two",
        "3_Three",
        "1_Other",
    ]
    assert "4 problems, 3 of them in the results already; results go to r.jsonl" in capsys.readouterr().err
    executor.ran = []
    assert evaluate("--resume", "r.jsonl") == 0 and executor.ran == []
    assert evaluate("--resume", "r.jsonl", "--mode", "train", "--problem", "2:1") == 0 and executor.ran == ["1_Other"]
    assert len(results_file.read(tmp_path / "r.jsonl").records) == 5


def test_an_interrupted_run_says_how_to_go_on(evaluate, executor, shown, capsys) -> None:
    executor.stop_after = 2
    assert evaluate("--results", "r.jsonl") == 130
    said = capsys.readouterr().err
    assert "[2/4] level1/2_Two  ok" in said and "interrupted" in said and "--resume r.jsonl" in said
    executor.stop_after = None
    assert evaluate("--resume", "r.jsonl") == 0 and executor.ran == ["3_Three", "1_Other"]


def test_half_a_line_at_the_end_is_said(evaluate, executor, shown, capsys) -> None:
    evaluate("--results", "r.jsonl", "--level", "1")
    Path("r.jsonl").write_bytes(Path("r.jsonl").read_bytes()[:-20])
    assert evaluate("--resume", "r.jsonl", "--level", "1") == 0 and executor.ran == ["3_Three"]
    assert "r.jsonl: its last line was cut off; that problem is run again" in capsys.readouterr().err


def test_a_number_of_workers_that_is_none(evaluate, capsys) -> None:
    for number in ("0", "x"):
        with pytest.raises(SystemExit):
            evaluate("--workers", number)
        assert "must be 1 or more" in capsys.readouterr().err


def test_a_run_that_cannot_go_on_keeps_what_it_has(evaluate, executor, shown, capsys) -> None:
    executor.stop_after, executor.error = 1, errors.NoSuchDevice(device="cuda:0", interpreter="python", detail="gone")
    assert evaluate("--results", "r.jsonl") == 2
    said = capsys.readouterr().err
    assert "There is no device cuda:0" in said and "--resume r.jsonl" in said and not shown
    assert len(results_file.read(Path("r.jsonl")).records) == 1


def test_statuses_can_be_tried_again(evaluate, executor, shown) -> None:
    executor.status = "failed"
    evaluate("--results", "r.jsonl", "--level", "1")
    executor.status = "ok"
    evaluate("--resume", "r.jsonl", "--level", "1", "--retry", "timeout,crashed")
    assert executor.ran == ["1_One", "2_Two", "3_Three"] and {one.status for one in shown[-1]} == {"failed"}
    evaluate("--resume", "r.jsonl", "--level", "1", "--retry", "failed")
    assert {one.status for one in shown[-1]} == {"ok"}


def test_files_of_several_machines_are_merged_into_the_first(evaluate, executor, shown) -> None:
    evaluate("--results", "a.jsonl", "--level", "1")
    evaluate("--results", "b.jsonl", "--level", "2")
    executor.ran = []
    assert evaluate("--resume", "a.jsonl", "b.jsonl") == 0 and executor.ran == []
    assert len(results_file.read(Path("a.jsonl")).records) == 4 and len(results_file.read(Path("b.jsonl")).records) == 1
    assert evaluate("--resume", "a.jsonl", "b.jsonl", "--results", "c.jsonl") == 0
    assert len(results_file.read(Path("c.jsonl")).records) == 4


def test_a_first_file_that_is_not_there_is_begun(evaluate, executor, shown) -> None:
    assert evaluate("--resume", "r.jsonl") == 0 and len(executor.ran) == 4
    assert len(results_file.read(Path("r.jsonl")).records) == 4


def test_without_a_name_the_results_go_to_a_new_file_here(evaluate, executor, shown, tmp_path) -> None:
    assert evaluate("--level", "2") == 0
    (file,) = tmp_path.glob("eval-kernelbench-eval-*.jsonl")
    assert len(results_file.read(file).records) == 1


def test_the_settings_given_reach_the_jobs(evaluate, executor, shown) -> None:
    evaluate("--mode", "train", "--baseline", "default,reduce-overhead", "--generator", "synthesizer", "--seconds", "7")
    assert executor.plan.mode == "train"
    assert executor.plan.settings == {
        "baselines": ["default", "reduce-overhead"],
        "generators": ["synthesizer"],
        "seconds": 7.0,
        "precision": "strict",
        "keep_packed_weights": False,
    }
    evaluate("--results", "r2.jsonl", "--baseline", "none")
    # whatever pyproject.toml says
    assert executor.plan.settings == {"baselines": [], "precision": "strict", "keep_packed_weights": False}
    evaluate("--results", "r3.jsonl", "--precision", "tf32")
    assert executor.plan.settings["precision"] == "tf32"
    assert results_file.read(Path("r3.jsonl")).header["precision"] == "tf32"
    evaluate("--results", "r4.jsonl", "--keep-packed-weights")
    assert executor.plan.settings["keep_packed_weights"] is True
    assert results_file.read(Path("r4.jsonl")).header["keep_packed_weights"] is True


def test_other_settings_than_before_are_said(evaluate, executor, shown, capsys) -> None:
    evaluate("--results", "r.jsonl", "--seconds", "7")
    capsys.readouterr()
    evaluate("--resume", "r.jsonl", "--seconds", "8")
    assert "earlier results were made with seconds 7.0 (now 8.0)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--level", "7"], "SelectionEmpty"),
        (["--problem", "x"], "SelectionInvalid"),
        (["--retry", "nonsense"], "StatusUnknown"),
        (["--results", "taken.jsonl"], "ResultsExist"),
        (["--results", "no/such/folder.jsonl"], "ResultsNotWritten"),
        (["--resume", "taken.jsonl"], "NotAResultsFile"),
        (["--resume", "new.jsonl", "missing.jsonl"], "ResultsMissing"),
        (["--resume", "other.jsonl"], "ResultsOfAnotherVersion"),
        (["--baseline", "fastest"], "SettingInvalid"),
        (["--device", "tpu"], "SettingInvalid"),
        (["--seconds", "0"], "SettingInvalid"),
        (["--generator", "magic"], "GeneratorUnknown"),
        (["--markdown", "taken.jsonl/x.md"], "ReportNotWritten"),
        (["--html", "taken.jsonl/x.html"], "ReportNotWritten"),
        (["--resume", "taken.jsonl", "--markdown", "./taken.jsonl"], "ReportNotWritten"),
        (["--resume", "new.jsonl", "taken.jsonl", "--html", "taken.jsonl"], "ReportNotWritten"),
        (["--results", "new.jsonl", "--html", "new.jsonl"], "ReportNotWritten"),
        (["--markdown", "page", "--html", "bench/../page"], "ReportNotWritten"),
        (["--stand-ins", "times.jsonl", "--markdown", "times.jsonl"], "ReportNotWritten"),
    ],
)
def test_what_is_refused_before_anything_is_run(
    evaluate: Callable[..., int], executor: Executor, tmp_path: Path, capsys: Any, arguments: list[str], code: str
) -> None:
    (tmp_path / "taken.jsonl").write_text("mine\n")
    (tmp_path / "times.jsonl").write_text("")
    (tmp_path / "other.jsonl").write_text('{"kernel-lsp-eval": 99}\n')
    before = sorted(tmp_path.iterdir())
    assert evaluate("--json", *arguments) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["error"]["code"] == code, document
    assert executor.ran == [] and sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "taken.jsonl").read_text() == "mine\n"


def test_a_folder_that_is_not_there_or_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suite in ("kernelbench", "folder"):
        for folder in (tmp_path, tmp_path / "nowhere"):
            assert cli.main(["eval", suite, str(folder)]) == 2
            assert str(folder) in capsys.readouterr().err


def test_durations() -> None:
    assert [eval_progress.duration(s) for s in (4.4, 89, 600, 12000)] == ["4 s", "89 s", "10 min", "3 h 20 min"]


# With workers, in processes of their own.

STATUSES = {
    "level1/1_Scale": "ok",
    "level1/2_Crash": "crashed",
    "level1/3_Gate": "ok",
    "level1/4_Huge": "out-of-memory",
    "level1/5_Branch": "not-exportable",
    "level1/6_Empty": "failed",
    "level2/1_Sleep": "timeout",
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A suite of whatever can happen. ``3_Gate`` waits until there is a file named ``open``."""
    folder = tmp_path / "hostile"
    write(folder / "level1" / "1_Scale.py", "return x * 2.0")
    write(folder / "level1" / "2_Crash.py", "os.kill(os.getpid(), signal.SIGSEGV)")
    gate = "os.path.exists({here!r}) or open({here!r}, 'w').close(); [time.sleep(0.02) for _ in iter(lambda: os.path.exists({gate!r}), True)]; return x + 1.0"
    write(folder / "level1" / "3_Gate.py", gate, here=str(tmp_path / "here"), gate=str(tmp_path / "open"))
    write(folder / "level1" / "4_Huge.py", "return x + torch.empty(2**50)[:8]")
    write(folder / "level1" / "5_Branch.py", "return x if x.sum() > 0 else -x")
    (folder / "level1" / "6_Empty.py").write_text("x = 1\n")
    write(folder / "level2" / "1_Sleep.py", "time.sleep(600); return x")
    # Its own budget, not --seconds: a busy machine may take long to import torch for the others.
    (folder / "level2" / "pyproject.toml").write_text("[tool.kernel-lsp]\nseconds = 1.0\n")
    return folder


def start(folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    line = [
        *nursery.CLI,
        "eval",
        "kernelbench",
        folder,
        "--device",
        "interpreter",
        *arguments,
    ]
    return subprocess.Popen(
        list(map(str, line)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts the tests in the background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(file: Path, process: subprocess.Popen[str], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"{file} never came: {process.communicate()}")
        time.sleep(0.05)


def statuses(document: str) -> dict[str, str]:
    return {record["problem"]["id"]: record["status"] for record in json.loads(document)["records"]}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_interrupted_and_resumed_it_comes_to_the_same(hostile: Path, tmp_path: Path) -> None:
    results, here = tmp_path / "r.jsonl", tmp_path / "here"
    killed = start(hostile, "--results", results)
    wait_for(here, killed)
    killed.kill()  # as a machine that loses power
    killed.communicate()
    first = results_file.read(results).records
    assert {one.problem.id: one.status for one in first} == {"level1/1_Scale": "ok", "level1/2_Crash": "crashed"}

    interrupted = start(hostile, "--resume", results)
    assert interrupted.stderr is not None and "2 of them in the results already" in interrupted.stderr.readline()
    refused = start(hostile, "--resume", results)
    assert "Another evaluation is writing" in refused.communicate(timeout=60)[1] and refused.returncode == 2
    interrupted.send_signal(signal.SIGINT)
    _, said = interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130 and f"--resume {results}" in said, said
    assert results_file.read(results).records == first

    (tmp_path / "open").touch()
    resumed = start(hostile, "--resume", results, "--json")
    document, said = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, said
    assert statuses(document) == STATUSES, said
    everything = results_file.read(results).records
    assert everything[:2] == first and len(everything) == len(STATUSES)  # nothing was run twice
    assert str(tmp_path) not in "".join(json.dumps(one.error) for one in everything)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_same_without_an_interruption_and_killed_again_and_again(hostile: Path, tmp_path: Path) -> None:
    (tmp_path / "open").touch()
    whole = start(hostile, "--results", tmp_path / "whole.jsonl", "--json", "--workers", "2")
    document, said = whole.communicate(timeout=400)
    assert whole.returncode == 0 and statuses(document) == STATUSES, said
    results = tmp_path / "r.jsonl"
    for seconds in (3.0, 9.0, 15.0):
        process = start(hostile, "--resume", results)
        time.sleep(seconds)
        process.kill()
        process.communicate()
    last = start(hostile, "--resume", results, "--json")
    document, said = last.communicate(timeout=400)
    assert last.returncode == 0 and statuses(document) == STATUSES, said
