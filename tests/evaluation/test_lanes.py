"""How problems are spread over lanes, and what a lane makes of a job that does not end. No worker is started here."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kernel_lsp import errors, schema
from kernel_lsp.evaluation import lane as lanes
from kernel_lsp.evaluation import runner
from kernel_lsp.evaluation.lane import Lane, LaneLost, Plan
from kernel_lsp.evaluation.record_of_job import record_of, was_held_up
from kernel_lsp.evaluation.records import Record
from kernel_lsp.suites.found import Found
from kernel_lsp.suites.problem import Problem

GB = 1_000_000_000
FOUND = [Found(Problem("folder", f"{n}", f"{n}", f"{n}.py", "A"), Path(f"/{n}.py"), Path("/")) for n in range(6)]


class FakeLane:
    def __init__(self, lost_at: int | None = None, seconds: float = 0.0) -> None:
        self.lost_at, self.seconds, self.done, self.closed = lost_at, seconds, 0, False

    async def evaluate(self, found: Found) -> Record:
        await asyncio.sleep(self.seconds)
        if self.done == self.lost_at:
            raise LaneLost(errors.NoSuchDevice(device="cuda:7", interpreter="python", detail="it fell off the bus"))
        self.done += 1
        return Record(found.problem, "eval", "ok")

    async def close(self) -> None:
        self.closed = True


def serve(*lanes: FakeLane) -> list[str]:
    ended: list[str] = []
    asyncio.run(runner._serve(deque(FOUND), list(lanes), lambda record: ended.append(record.problem.id)))  # type: ignore[arg-type]
    return ended


def test_every_problem_once_on_whichever_lane_is_free() -> None:
    fast, slow = FakeLane(), FakeLane(seconds=0.2)
    assert sorted(serve(fast, slow)) == list("012345")
    assert (fast.done, slow.done) == (5, 1) and fast.closed and slow.closed


def test_a_lost_lane_puts_its_problem_back_also_when_the_others_were_done() -> None:
    assert sorted(serve(FakeLane(), FakeLane(lost_at=0, seconds=0.1))) == list("012345")


def test_when_no_lane_is_left_the_run_ends_with_the_reason() -> None:
    lane = FakeLane(lost_at=2)
    with pytest.raises(errors.NoSuchDevice, match="fell off"):
        serve(lane, FakeLane(lost_at=0))
    assert lane.done == 2 and lane.closed


def test_records_that_cannot_be_written_end_the_run() -> None:
    def full(record: Record) -> None:
        raise errors.ResultsNotWritten(path="r.jsonl", detail="No space left on device")

    lane = FakeLane()
    with pytest.raises(errors.ResultsNotWritten):
        asyncio.run(runner._serve(deque(FOUND), [lane, FakeLane()], full))  # type: ignore[list-item]
    assert lane.closed


@pytest.mark.parametrize(
    ("wanted", "gpus", "workers", "expected"),
    [
        ("auto", 0, None, ["interpreter"]),
        ("auto", 0, 3, ["interpreter"] * 3),
        ("auto", 2, None, ["cuda:0", "cuda:1"]),
        ("cuda", 4, 2, ["cuda:0", "cuda:1"]),
        ("cuda:1", 2, None, ["cuda:1"]),
        ("cuda:1", 2, 2, ["cuda:1", "cuda:1"]),
        ("auto", 2, 3, ["cuda:0", "cuda:1", "cuda:0"]),
        ("interpreter", 8, None, ["interpreter"]),
    ],
)
def test_lanes(wanted: str, gpus: int, workers: int | None, expected: list[str]) -> None:
    assert runner.lanes_for(wanted, gpus, workers) == expected


@pytest.mark.parametrize(("wanted", "gpus"), [("cuda", 0), ("cuda:2", 2)])
def test_a_device_that_is_not_here(wanted: str, gpus: int) -> None:
    with pytest.raises(errors.NoSuchDevice, match=f"{gpus} CUDA GPUs"):
        runner.lanes_for(wanted, gpus, None)


class StuckJobs:
    """A queue whose job neither ends nor heeds a cancel."""

    made = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        StuckJobs.made += 1

    async def hello(self, path: Path) -> dict[str, Any]:
        return {"python": "3.11", "problems": []}

    async def ready(self, path: Path) -> None:
        pass

    def submit(self, kind: str, target: schema.Target, path: Path, **_: Any) -> Any:
        job = lanes.Job("generate-1", "generate", target, path, report=schema.Report(target))
        job.task = asyncio.get_running_loop().create_task(self._never())
        return job

    async def _never(self) -> None:
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                if StuckJobs.made > 1:  # the lane has given up on it
                    raise

    def cancel(self, job_id: str) -> bool:
        return True

    def worker_pids(self) -> list[int]:
        return []

    def rest(self) -> None:
        pass

    async def close(self) -> None:
        pass


def test_a_job_that_never_ends_is_a_timeout_and_the_lane_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "Jobs", StuckJobs)
    monkeypatch.setattr(lanes, "OVER_SECONDS", 0.05)
    monkeypatch.setattr(lanes, "_CANCEL_SECONDS", 0.05)
    StuckJobs.made = 0
    (tmp_path / "a.py").touch()
    found = Found(Problem("folder", "a.py::A", "A", "a.py", "A"), tmp_path / "a.py", tmp_path)
    lane = Lane(Plan(settings={"seconds": 0.05}), "interpreter")
    record = asyncio.run(lane.evaluate(found))
    assert record.status == "timeout" and record.error and record.error["code"] == "WorkerTimedOut"
    assert StuckJobs.made == 2


class WaitingJobs(StuckJobs):
    """A queue whose job waits for the GPU three times as long as a problem may take, and says so."""

    async def _never(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0.1)
            spent = self.job.report.spent
            spent["waiting"] = spent.get("waiting", 0.0) + 0.1
        self.job.state = "done"

    def submit(self, *arguments: Any, **named: Any) -> Any:
        self.job = super().submit(*arguments, **named)
        return self.job


def test_a_job_that_waits_for_the_gpu_is_not_given_up_and_its_seconds_are_those_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "Jobs", WaitingJobs)
    monkeypatch.setattr(lanes, "OVER_SECONDS", 0.25)
    (tmp_path / "a.py").touch()
    found = Found(Problem("folder", "a.py::A", "A", "a.py", "A"), tmp_path / "a.py", tmp_path)
    record = asyncio.run(Lane(Plan(settings={"seconds": 0.05}), "interpreter").evaluate(found))
    assert record.error is None and record.status == "no-candidates"
    assert record.seconds < 0.5


class CrowdedLane(Lane):
    """A lane of whose problems one ends as ``ending`` says where another lane is at work; ``at_work`` and ``seen`` are of all lanes."""

    ending: ClassVar[Any] = None
    at_work: ClassVar[set[Any]] = set()
    seen: ClassVar[list[tuple[str, int]]] = []

    async def _evaluate(self, found: Found, quota: tuple[int, int] | None) -> Record:
        self.at_work.add(self)
        await asyncio.sleep(0.05)
        self.seen.append((found.problem.id, len(self.at_work)))
        crowded = len(self.at_work) > 1
        await asyncio.sleep(0.05)
        self.at_work.discard(self)
        if crowded and found.problem.id == "1":
            return type(self).ending(found.problem)
        return Record(found.problem, "eval", "ok")


OUT_OF_MEMORY = errors.GpuOutOfMemory(
    device="cuda:0", class_name="A", needed="9 GB", there="1 GB", detail="out of memory"
)


def lacking(problem: Problem) -> Record:
    return record_of(problem, "eval", None, OUT_OF_MEMORY, 1.0)


def without_times(
    problem: Problem, *others: schema.Validated, why: str = "a call takes 8474 µs by the clock"
) -> Record:
    """The record of a kernel whose times were withdrawn."""
    missing = schema.Measurement(missing=f"{schema.MEASURING_ERROR}: {why}")
    withdrawn = schema.Validated(schema.Candidate("", "synthesizer"), schema.Verdict("ok"), missing)
    report = schema.Report(schema.Target("file:///a.py", "A"), candidates=[withdrawn, *others], chosen=0)
    return record_of(problem, "eval", report, None, 1.0)


def test_a_problem_is_held_up_where_none_of_its_candidates_has_times() -> None:
    timed = schema.Measurement(shapes=[schema.ShapeMeasurement(inputs=[], kernel=schema.Timing(5.0, 5.0, 5.0, 20))])
    other = schema.Validated(schema.Candidate("", "synthesizer"), schema.Verdict("ok"), timed)
    problem = FOUND[0].problem
    assert was_held_up(without_times(problem)) and not was_held_up(without_times(problem, other))
    assert not was_held_up(lacking(problem))
    assert not was_held_up(without_times(problem, why="5.0 µs is below what the device needs for its bytes (9.0 µs)"))


@pytest.mark.parametrize("ending", [lacking, without_times])
def test_a_problem_that_lacked_memory_or_was_held_up_is_run_again_with_the_gpu_to_itself(
    ending: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CrowdedLane, "ending", staticmethod(ending))
    CrowdedLane.seen.clear()
    shared, ended = lanes.Shared(), {}
    shared.problems.allow(3)
    three = [CrowdedLane(Plan(), "cuda:0", shared=shared) for _ in range(3)]
    asyncio.run(runner._serve(deque(FOUND), three, lambda record: ended.update({record.problem.id: record.status})))  # type: ignore[arg-type]
    assert ended == dict.fromkeys("012345", "ok")
    assert [together for name, together in CrowdedLane.seen if name == "1"] == [3, 1]
    assert max(together for _, together in CrowdedLane.seen[3:] if together) > 1, "the others go on together"


def test_a_problem_that_lacked_memory_with_the_gpu_to_itself_is_not_run_again() -> None:
    class Lacks(Lane):
        runs = 0

        async def _evaluate(self, found: Found, quota: tuple[int, int] | None) -> Record:
            self.runs += 1
            return record_of(found.problem, "eval", None, OUT_OF_MEMORY, 1.0)

    lane = Lacks(Plan(), "cuda:0")
    assert asyncio.run(lane.evaluate(FOUND[0])).status == "out-of-memory" and lane.runs == 1


def test_a_problem_keeps_to_its_lanes_quota_and_has_none_once_it_is_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = []

    class Lacking(StuckJobs):
        def submit(self, *arguments: Any, quota: tuple[int, int] | None, **named: Any) -> Any:
            quotas.append(quota)
            job = super().submit(*arguments, **named)
            job.error, job.state = OUT_OF_MEMORY, "failed"
            return job

        async def _never(self) -> None:
            pass

    monkeypatch.setattr(lanes, "Jobs", Lacking)
    (tmp_path / "a.py").touch()
    shared = lanes.Shared(quota=(17, 80))
    shared.problems.allow(2)
    found = Found(Problem("folder", "a.py::A", "A", "a.py", "A"), tmp_path / "a.py", tmp_path)
    record = asyncio.run(Lane(Plan(), "cuda:0", shared=shared).evaluate(found))
    assert record.status == "out-of-memory" and quotas == [(17, 80), None]


@pytest.mark.parametrize(
    ("workers", "locks", "expected"),
    [
        (3, True, {"cuda:0": (70, 140), "cuda:1": None}),
        (4, True, {"cuda:0": (70, 140), "cuda:1": (40, 80)}),
        (4, False, {"cuda:0": None}),
    ],
)
def test_the_lanes_of_a_gpu_have_equal_parts_of_its_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
    locks: bool,
    expected: dict[str, tuple[int, int] | None],
) -> None:
    """One that has it for itself has no quota, nor have those that take turns since no lock can be had."""
    monkeypatch.setenv("KERNEL_LSP_STORE", "")
    (tmp_path / "taken").touch()

    async def hello(lane: Lane, file: Path) -> dict[str, Any]:
        return {"devices": [{"kind": "cuda", "memory": size * GB} for size in (140, 80)] + [{"kind": "interpreter"}]}

    monkeypatch.setattr(Lane, "hello", hello)
    folder = str(tmp_path / ("locks" if locks else "taken"))
    made = asyncio.run(runner.make_lanes(tmp_path / "a.py", Plan(), workers, lambda *_: None, folder))
    quotas = {lane.device: lane.shared.quota for lane in made}
    assert len(made) == workers
    assert {device: quotas[device] for device in expected} == {
        device: each and (each[0] * GB, each[1] * GB) for device, each in expected.items()
    }


@pytest.mark.parametrize(
    ("sizes", "locks", "devices", "said"),
    [
        ([17, 80], True, ["cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:1"], "3 of 4 workers"),
        ([4, 80], True, ["cuda:0", "cuda:1", "cuda:1", "cuda:1", "cuda:1"], "1 of 4 workers"),
        ([4, None], False, ["cuda:0", "cuda:1"] * 4, ""),
        ([40, None], True, ["cuda:0", "cuda:1"] * 4, ""),
    ],
)
def test_no_more_lanes_share_a_gpu_than_its_memory_has_room_for_and_a_line_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sizes: list[int | None],
    locks: bool,
    devices: list[str],
    said: str,
) -> None:
    monkeypatch.setenv("KERNEL_LSP_STORE", "")
    (tmp_path / "taken").touch()

    async def hello(lane: Lane, file: Path) -> dict[str, Any]:
        return {"devices": [{"kind": "cuda", "memory": size and size * GB} for size in sizes]}

    monkeypatch.setattr(Lane, "hello", hello)
    folder = str(tmp_path / ("locks" if locks else "taken"))
    made = asyncio.run(runner.make_lanes(tmp_path / "a.py", Plan(), 8, lambda *_: None, folder))
    assert [lane.device for lane in made] == devices
    assert all(lane.shared.quota is None or lane.shared.quota[0] >= 5 * GB for lane in made)
    assert made[0].shared.problems.most == devices.count("cuda:0")
    starts, *lines, ready = capsys.readouterr().err.splitlines()
    assert starts == "kernel-lsp: starting the worker, which imports torch"
    known = r"kernel-lsp: the worker was ready after \d+\.\d s; the times of problems do not include that; (\d+) workers run problems at once"
    assert (match := re.fullmatch(known, ready)) and int(match[1]) == len(devices)
    assert len(lines) == bool(said)
    assert not said or (lines[0].startswith(f"kernel-lsp: cuda:0 has {sizes[0]} GB of memory") and said in lines[0])


def test_without_the_size_of_its_memory_lanes_have_no_quota() -> None:
    assert runner._quota([{"kind": "cuda", "memory": None}], "cuda:0", 2) is None
    assert runner._quota([], "interpreter", 2) is None


@pytest.mark.parametrize("store", [True, False])
def test_lanes_of_one_gpu_have_one_folder_for_locks_and_others_of_the_user_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: bool
) -> None:
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "user" / "store.sqlite") if store else "")

    async def hello(lane: Lane, file: Path) -> dict[str, Any]:
        return {"devices": [{"kind": "cuda"}] * 2}

    monkeypatch.setattr(Lane, "hello", hello)

    async def made() -> list[Lane]:
        return await runner.make_lanes(tmp_path / "a.py", Plan(), 3, lambda *_: None, str(tmp_path / "temporary"))

    first, second, third = asyncio.run(made())
    assert [lane.device for lane in (first, second, third)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert first.shared is third.shared is not second.shared
    assert (first.shared.gpu.most, second.shared.gpu.most) == (first.shared.problems.most, 1) == (2, 1)
    expected = str(tmp_path / ("user" if store else "temporary"))
    assert {lane.shared.locks for lane in (first, second, third)} == {expected}


def test_where_no_lock_can_be_had_the_lanes_of_a_gpu_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_LSP_STORE", "")
    (tmp_path / "taken").touch()

    async def hello(lane: Lane, file: Path) -> dict[str, Any]:
        return {"devices": [{"kind": "cuda"}]}

    monkeypatch.setattr(Lane, "hello", hello)

    async def made() -> list[Lane]:
        return await runner.make_lanes(tmp_path / "a.py", Plan(), 3, lambda *_: None, str(tmp_path / "taken"))

    first, *_ = asyncio.run(made())
    assert (first.shared.gpu.most, first.shared.locks) == (1, None)


def test_a_file_that_is_gone_is_a_failed_problem(tmp_path: Path) -> None:
    found = Found(Problem("folder", "a.py::A", "A", "a.py", "A"), tmp_path / "a.py", tmp_path)
    record = asyncio.run(Lane(Plan(), "interpreter").evaluate(found))
    assert record.status == "failed" and record.reason.startswith("a.py is not on disk")


def test_an_interpreter_that_is_not_there_is_no_problems_result(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    found = Found(Problem("folder", "a.py::A", "A", "a.py", "A"), tmp_path / "a.py", tmp_path)
    with pytest.raises(errors.InterpreterMissing):
        runner.run([found], Plan(settings={"interpreter": "/nowhere/python"}), None, print, lambda *_: None)


def test_each_gpu_has_its_own_model(tmp_path: Path) -> None:
    settings = Lane(Plan(), "cuda:3")._settings(tmp_path / "a.py")
    assert (settings.device, settings.kernelllm.device) == ("cuda:3", "cuda:3")
    settings = Lane(Plan(settings={"kernelllm": {"device": "cpu"}}), "cuda:3")._settings(tmp_path / "a.py")
    assert settings.kernelllm.device == "cpu"
