"""Tuning: one schedule is validated, all are timed, the fastest is validated before it is reported."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

MODULE = """
import torch
class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(40)
    def forward(self, x):
        return torch.softmax(self.norm(x) * 2 + 1, -1)
def get_inputs(): return [torch.randn(4, 40)]
"""


@pytest.fixture(scope="module")
def written(worker, tmp_path_factory):
    """The module's file, and what the synthesizer makes of it."""
    path = tmp_path_factory.mktemp("tuning") / "module.py"
    path.write_text(MODULE)
    return path, worker.call("synthesize", path=str(path), class_name="Norm", device="interpreter", training=False)


@pytest.fixture
def tune(written, on_the_host, tmp_path):
    """``tune(change, fast)``: the answer for the synthesizer's schedules, changed by index, and the verdicts as told."""

    def run(
        change: dict[int, tuple[str, str]],
        fast: int | str,
        thorough: bool = False,
        about: dict[str, Any] | None = None,
        quota: tuple[int, int] | None = None,
        seconds: float = 100,
    ):
        path, made = written
        sources = [candidate["source"] for candidate in made["candidates"]]
        assert len(sources) >= 3
        for index, (old, new) in change.items():
            assert old in sources[index]
            sources[index] = sources[index].replace(old, new, 1)
        given = {"path": str(path), "class_name": "Norm", "device": "interpreter", "training": False}
        given |= {"specimen": made["specimen"], "sources": sources, "scratch": str(tmp_path), "seconds": seconds}
        given |= {"threads": 1, "rates": None, "inputs": None, "thorough": thorough, "locks": str(tmp_path / "locks")}
        given["quota"] = quota
        found = on_the_host("tune", given, str(fast), tmp_path)
        if about is not None:
            about |= found
        return found["result"], found["verdicts"]

    return run


HANGS = ("    return softmax\n", "    while x.shape[0] == 4:\n        pass\n    return softmax\n")
DIES = ("    return softmax\n", "    torch._C._abort() if x.shape[0] == 4 else None\n    return softmax\n")
ELSEWHERE = ("    return softmax\n", "    return softmax + 1 if x.shape[0] == 1 else softmax\n")
EVERYWHERE = ("    return softmax\n", "    return softmax + 1\n")

SPANS = "which kernels take the time"


def names(verdict):
    return {check["name"] for check in verdict["checks"]}


@pytest.mark.slow
def test_the_fastest_is_validated_in_full_before_it_is_reported(tune):
    result, told = tune({}, fast=1)
    assert [(one["index"], one["verdict"]["status"]) for one in told] == [(0, "ok")]  # long before the end
    assert result["fastest"] == 1 and result["tried"][1]["fastest"]
    fastest, first = result["verdicts"]["1"], result["verdicts"]["0"]
    assert any(limit.startswith(SPANS) for limit in fastest["limits"])  # the profiler sees nothing on the host
    assert fastest["status"] in ("ok", "slower")  # than eager: the interpreter's time, a hundredth of it
    assert {"gradients", "float64", "sizes of one"} <= names(fastest)
    assert any("another schedule is faster" in limit for limit in first["limits"])
    assert result["measurement"]["shapes"][0]["kernel"]["median"] == result["tried"][1]["timing"]["median"]
    assert all(one["timing"] for one in result["tried"]) and "tuning: time" in result["spent"]


@pytest.mark.slow
def test_others_may_check_while_it_is_checked_and_not_while_it_is_timed(tune, tmp_path):
    """One that times when it begins is waited for, which is not on its time."""
    holder = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    (tmp_path / "locks").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path / "locks" / "cpu.lock")], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout and other.stdout.readline() == "held\n"
        # Not before the worker has begun to wait.
        waits = threading.Thread(target=lambda: (_until_open(tmp_path / "locks" / "cpu.gate"), other.kill()))
        waits.start()
        about: dict[str, Any] = {}
        result, _ = tune({}, fast=1, about=about)
        waits.join()
    assert result["fastest"] == 1 and result["verdicts"]["1"]["status"] in ("ok", "slower")
    assert set(about["others"]["check"]) == {"shared"} and set(about["others"]["time"]) == {"not"}
    assert about["moved"] == [pytest.approx(about["waited"])] and about["waited"] > 0.9
    parts = result["spent"]
    assert "waiting" not in parts, "the job adds up what it is told of"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quota", "others"),
    [((1 << 20, 1 << 21), "not"), ((1 << 40, 1 << 41), "alone")],
)
def test_others_have_what_it_does_not_need_of_the_memory_while_it_is_checked_and_timed(tune, quota, others):
    about: dict[str, Any] = {}
    result, _ = tune({}, fast=1, about=about, quota=quota)
    assert result["fastest"] == 1 and result["measurement"]["beside"] == ""
    assert set(about["others"]["memory"]) == {others}
    assert set(about["others"]["check"]) == {"shared"} and set(about["others"]["time"]) == {"not"}


def _until_open(gate: Path) -> None:
    while not gate.exists():
        time.sleep(0.05)
    time.sleep(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("fast", [0, 1])
def test_what_timing_could_not_tell_is_a_limit_of_the_fastest_though_no_check_comes_after_it(tune, fast):
    """On the host the profiler sees no kernel on a GPU. A thorough verdict is composed before the times are taken."""
    result, told = tune({}, fast=fast, thorough=True)
    first = told[0]["verdict"]["limits"]
    assert not any(limit.startswith((SPANS, "still to be checked")) for limit in first)
    assert result["fastest"] == fast
    verdict = result["verdicts"][str(fast)]
    assert sum(limit.startswith(SPANS) for limit in verdict["limits"]) == 1


@pytest.mark.slow
def test_a_schedule_that_is_wrong_at_the_examples_sizes_is_not_timed(tune):
    result, _ = tune({1: EVERYWHERE}, fast=1)
    assert "relative error" in result["tried"][1]["reason"] and result["tried"][1]["timing"] is None
    assert result["fastest"] != 1 and result["verdicts"][str(result["fastest"])]["status"] in ("ok", "slower")


@pytest.mark.slow
def test_the_next_one_wins_where_the_fastest_is_wrong_elsewhere(tune):
    result, _ = tune({1: ELSEWHERE}, fast="1,2")
    assert result["verdicts"]["1"]["status"] == "wrong" and "sizes of one" in result["verdicts"]["1"]["reason"]
    assert "sizes of one" in result["tried"][1]["reason"] and not result["tried"][1]["fastest"]
    second = result["verdicts"]["2"]
    assert result["fastest"] == 2 and result["tried"][2]["fastest"] and second["status"] in ("ok", "slower")
    assert {"gradients", "float64", "sizes of one"} <= names(second)
    assert result["measurement"]["shapes"][0]["kernel"]["median"] == result["tried"][2]["timing"]["median"]


@pytest.mark.slow
def test_where_the_fastest_are_wrong_elsewhere_the_first_is_checked_to_the_end(tune):
    result, _ = tune({1: ELSEWHERE, 2: ELSEWHERE}, fast="1,2")
    assert [result["verdicts"][i]["status"] for i in ("1", "2")] == ["wrong", "wrong"]
    first = result["verdicts"]["0"]
    assert result["fastest"] == 0 and first["status"] in ("ok", "slower"), first["reason"]
    assert {"gradients", "float64", "sizes of one"} <= names(first)
    assert not any("still to be checked" in limit for limit in first["limits"])
    assert result["measurement"]["shapes"][0]["kernel"]["median"] == result["tried"][0]["timing"]["median"]


def test_where_the_first_is_wrong_the_others_are_not_tried(tune):
    result, told = tune({0: EVERYWHERE}, fast=1)
    assert result["verdicts"]["0"]["status"] == "wrong" and result["tried"] == [] and len(told) == 1


@pytest.mark.slow
def test_one_that_does_not_compile_is_passed_over(tune):
    result, _ = tune({2: ("tl.load(", "tl.lode(")}, fast=1)
    assert result["tried"][2]["reason"] and result["fastest"] == 1


@pytest.mark.slow
def test_a_correct_kernel_is_checked_to_the_end_and_timed_where_another_schedule_takes_all_the_time(tune):
    began = time.monotonic()
    result, told = tune({1: HANGS}, fast=0, seconds=40)
    assert time.monotonic() - began < 60
    verdict = result["verdicts"]["0"]
    assert told[0]["verdict"]["status"] == "ok" and verdict["status"] in ("ok", "slower"), verdict["reason"]
    assert {"gradients", "float64", "sizes of one"} <= names(verdict)
    assert any(limit.startswith("other schedules were not timed") for limit in verdict["limits"])
    assert not any(limit.startswith(("still to be checked", "not checked, since")) for limit in verdict["limits"])
    assert result["tried"] == [] and result["fastest"] == 0
    assert result["measurement"]["shapes"][0]["kernel"]["median"] > 0


@pytest.mark.slow
def test_a_correct_kernel_is_checked_and_timed_where_another_schedule_ends_the_process(tune):
    result, _ = tune({1: DIES}, fast=0)
    verdict = result["verdicts"]["0"]
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    assert {"gradients", "float64", "sizes of one"} <= names(verdict)
    assert any(
        limit.startswith("other schedules were not timed, since their process ended") for limit in verdict["limits"]
    )
    assert result["tried"] == [] and result["measurement"]["shapes"][0]["kernel"]["median"] > 0


@pytest.mark.slow
def test_where_no_schedule_is_right_at_the_examples_sizes_the_first_is_checked_and_timed_and_the_report_says_why(
    tune, written
):
    """Each goes wrong where others were imported beside it, which the first one's own process does not do."""
    beside = "len({one.forward.__code__.co_filename for one in Norm.__subclasses__()}) > 1"
    wrong = ("    return softmax\n", f"    return softmax + 1 if {beside} else softmax\n")
    result, _ = tune(dict.fromkeys(range(len(written[1]["candidates"])), wrong), fast=0)
    verdict = result["verdicts"]["0"]
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    (said,) = (limit for limit in verdict["limits"] if limit.startswith("other schedules were not timed"))
    assert "none of them could be used at the example's sizes (the first one: output[" in said, said
    assert result["tried"] == [] and result["measurement"]["shapes"][0]["kernel"]["median"] > 0


@pytest.mark.slow
def test_a_kernel_for_the_examples_sizes_alone_is_tried_for_a_decoy_there(tune):
    for_these_alone = ("type(x) in _PLAIN", "type(x) in _PLAIN and x.shape[0] == 4")
    result, _ = tune({0: for_these_alone}, fast=0)
    verdict = result["verdicts"]["0"]
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    assert {"launches", "repeated calls"} <= names(verdict)
