"""Many that check share a GPU, one that times has it alone: real processes, one that is killed, one that forks, a folder that cannot be written."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_lsp import errors
from kernel_lsp.validation import failures
from kernel_lsp.worker import gpu_contention, gpu_lock
from tests.confinement.waiting import wait_until
from tests.worker.forked import Forked

CPU = torch.device("cpu")
#: Does as it is told on standard input: "alone", "share", or how long to sleep; and says when it has.
HOLDER = """
import contextlib, os, sys, time, torch
from kernel_lsp.confinement import descriptors
from kernel_lsp.worker import gpu_lock
lock = gpu_lock.begin(sys.argv[1], torch.device("cpu"), lambda *_: None)
print("shared", flush=True)
alone = contextlib.ExitStack()
for line in sys.stdin:
    if line == "alone\\n":
        alone.enter_context(gpu_lock.alone(lock))
    elif line == "share\\n":
        alone.close()
    elif line == "fork\\n":
        if os.fork() == 0:
            descriptors.keep_only()
            time.sleep(60)
            os._exit(0)
    print("did", line, end="", flush=True)
"""
#: Holds a part of the GPU's memory, or all of it, to its end, and says where it waits for that. Checks and, as it is told, times or gives way.
MEMORY = """
import sys, torch
from kernel_lsp.worker import gpu_lock
def emit(name, data):
    if name == "progress" and "memory" in data["message"]:
        print("waits", flush=True)
lock = gpu_lock.begin(sys.argv[1], torch.device("cpu"), emit, parts=MEMORY)
print("shared", flush=True)
for line in sys.stdin:
    if line == "alone\\n":
        with gpu_lock.alone(lock):
            pass
    elif line == "give way\\n":
        gpu_lock.give_way(lock)
    print("did", line, end="", flush=True)
"""
#: Checks all the time: holds the lock shared for a tenth of a second, again and again.
READER = """
import sys, time, torch
from kernel_lsp.worker import gpu_lock
while True:
    lock = gpu_lock.begin(sys.argv[1], torch.device("cpu"), lambda *_: None)
    print("shared", flush=True)
    time.sleep(0.1)
    gpu_lock.end(lock)
"""


class Other:
    """Another process with the lock of the same GPU."""

    def __init__(self, folder: Path, program: str = HOLDER) -> None:
        self.forked = Forked(program, folder)
        self.process = self.forked.process

    def ask(self, verb: str) -> None:
        self.forked.write(verb)

    def heard(self, line: str) -> None:
        assert self.forked.line() == line

    def does(self, verb: str) -> None:
        self.ask(verb)
        self.heard(f"did {verb}")


@pytest.fixture
def other(tmp_path: Path):
    """``other()``: a process that shares the lock by now."""
    started = []

    def start(program: str = HOLDER, waits: bool = True) -> Other:
        one = Other(tmp_path, program)
        started.append(one)
        if waits:
            one.heard("shared")
        return one

    yield start
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.process.pid, signal.SIGKILL)  # with what it has forked
        one.forked.ended()
        one.forked.close()


class Told:
    """The progress that a waiting process reports."""

    def __init__(self, at_first: Callable[[], Any] = lambda: None) -> None:
        self.messages: list[str] = []
        self.events: list[float] = []
        self.moved = 0.0
        self.at_first = at_first

    def emit(self, name: str, data: Any) -> None:
        if name == "progress":
            self.messages.append(data["message"])
            self.at_first()
        else:
            assert name == "waiting"
            self.events.append(data["seconds"])

    def move(self, seconds: float) -> None:
        self.moved += seconds


def free(folder: Path, how: str, which: str = "lock") -> bool:
    """Whether the lock could be had now."""
    fcntl = pytest.importorskip("fcntl")
    with (folder / f"cpu.{which}").open("w") as file:
        try:
            fcntl.flock(file, getattr(fcntl, how) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_those_that_check_share_it_and_do_not_wait(other, tmp_path):
    other(), other()
    told = Told()
    lock = gpu_lock.begin(str(tmp_path), CPU, told.emit)
    assert not told.messages and lock.waited == 0
    assert free(tmp_path, "LOCK_SH") and not free(tmp_path, "LOCK_EX")
    gpu_lock.end(lock)


def test_one_that_times_waits_for_those_that_check_and_has_it_alone(other, tmp_path):
    checks = other()
    told = Told(checks.process.kill)
    lock = gpu_lock.begin(str(tmp_path), CPU, told.emit)
    with gpu_lock.alone(lock) as beside:
        assert checks.forked.ended() == -9
        assert not free(tmp_path, "LOCK_SH"), "somebody could check while it times"
        assert beside() == ""
    assert told.messages == ["waiting for another kernel-lsp that uses this GPU"]
    assert free(tmp_path, "LOCK_SH") and not free(tmp_path, "LOCK_EX"), "it checks again"
    gpu_lock.end(lock)
    assert free(tmp_path, "LOCK_EX")


def test_one_that_checks_waits_for_the_one_that_times_until_that_is_killed(other, tmp_path):
    times = other()
    times.does("alone")
    told = Told(times.process.kill)
    lock = gpu_lock.begin(str(tmp_path), CPU, told.emit)
    assert told.messages == ["waiting for another kernel-lsp that is timing on this GPU"]
    gpu_lock.end(lock)


def test_two_that_check_and_then_time_do_so_one_after_the_other(other, tmp_path):
    """Neither waits for ever for the other to stop checking."""
    first, second = other(), other()
    first.ask("alone")
    second.ask("alone")
    time.sleep(0.2)
    assert not free(tmp_path, "LOCK_SH")
    for one in (first, second):  # the one that waits hears of it only after the other has let go
        one.ask("share")
    for one in (first, second):
        one.heard("did alone")
        one.heard("did share")
    assert free(tmp_path, "LOCK_SH")


@pytest.mark.slow
def test_one_that_times_is_not_starved_by_a_stream_of_those_that_check(other, tmp_path):
    streams = [other(READER) for _ in range(3)]
    lock = gpu_lock.begin(str(tmp_path), CPU, lambda *_: None)
    began = time.monotonic()
    with gpu_lock.alone(lock, then_share=False):
        assert time.monotonic() - began < 10
    gpu_lock.end(lock)
    for stream in streams:
        stream.heard("shared")  # and they go on


def test_one_that_checks_gives_way_to_one_that_waits_to_time_and_to_no_other(other, tmp_path):
    lock = gpu_lock.begin(str(tmp_path), CPU, lambda *_: None)
    timing = other()
    gpu_lock.give_way(lock)
    assert lock.waited == 0.0
    timing.ask("alone")
    time.sleep(0.3)  # it waits for what is shared here
    timing.ask("share")
    gpu_lock.give_way(lock)
    timing.heard("did alone")
    timing.heard("did share")
    assert lock.waited > 0.0
    gpu_lock.end(lock)


def parts_left(folder: Path) -> int:
    """How many parts of the memory could be had now."""
    return sum(free(folder, "LOCK_EX", f"memory-{number}") for number in range(gpu_lock.PARTS))


@pytest.mark.slow
def test_one_that_takes_the_whole_memory_waits_for_those_with_parts_also_where_they_let_others_time(other, tmp_path):
    """These keep their memory when they give way and while they wait to time."""
    small = [other(MEMORY.replace("MEMORY", "5")) for _ in range(2)]
    assert parts_left(tmp_path) == gpu_lock.PARTS - 10
    large = other(MEMORY.replace("MEMORY", "gpu_lock.PARTS"), waits=False)
    large.heard("waits")
    small[0].ask("alone")
    time.sleep(0.2)
    small[1].does("give way")
    small[0].heard("did alone")
    small[0].process.kill()
    late = other(MEMORY.replace("MEMORY", "1"), waits=False)
    late.heard("waits")  # the large one waits for the second, too, and takes what comes free
    assert not free(tmp_path, "LOCK_EX", "memory-gate")
    deadline = time.monotonic() + 10  # it looks for them now and then
    while parts_left(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert parts_left(tmp_path) == 0
    small[1].process.kill()
    large.heard("shared")
    late.heard("waits")  # no longer behind the large one, but for what it has
    large.does("alone")
    large.process.kill()
    late.heard("shared")
    assert parts_left(tmp_path) == gpu_lock.PARTS - 1


def test_those_whose_parts_are_there_together_do_not_wait(other, tmp_path):
    for parts in (6, 5, 5):
        other(MEMORY.replace("MEMORY", str(parts)))
    assert parts_left(tmp_path) == 0


def test_those_that_take_the_whole_memory_do_so_one_after_the_other(other, tmp_path):
    first = other(MEMORY.replace("MEMORY", "gpu_lock.PARTS"))
    told = Told(first.process.kill)
    lock = gpu_lock.begin(str(tmp_path), CPU, told.emit, told.move, gpu_lock.PARTS)
    assert told.messages == ["waiting for the GPU's memory, which another lane uses"]
    assert lock.waited == pytest.approx(told.moved) and told.events
    assert parts_left(tmp_path) == 0
    gpu_lock.end(lock)
    assert parts_left(tmp_path) == gpu_lock.PARTS


def test_one_without_a_quota_waits_for_no_memory(other, tmp_path):
    other(MEMORY.replace("MEMORY", "gpu_lock.PARTS"))
    lock = gpu_lock.begin(str(tmp_path), CPU, lambda *_: pytest.fail("it waits"))
    gpu_lock.end(lock)


@pytest.mark.slow
def test_waiting_for_the_memory_has_no_limit(other, tmp_path, monkeypatch):
    """The holder may be the first of many that are to have it before."""
    monkeypatch.setattr(gpu_lock, "MOST_SECONDS", 0.3)
    for held, wanted in ((1, gpu_lock.PARTS), (gpu_lock.PARTS, 1), (10, 7)):
        holder = other(MEMORY.replace("MEMORY", str(held)))
        told = Told(threading.Timer(1.0, holder.process.kill).start)
        lock = gpu_lock.begin(str(tmp_path), CPU, told.emit, parts=wanted)
        assert lock.waited > 0.9
        gpu_lock.end(lock)


def test_what_is_forked_and_closes_its_descriptors_does_not_keep_it(other, tmp_path):
    """As a trial does."""
    times = other()
    times.does("alone")
    times.does("fork")
    assert not free(tmp_path, "LOCK_SH")
    times.process.kill()
    times.forked.ended()
    assert wait_until(lambda: free(tmp_path, "LOCK_EX"), 10)  # what it forked may close its descriptors a little later


def test_waiting_is_told_while_it_lasts_and_moves_the_deadline(other, tmp_path):
    times = other()
    times.does("alone")
    told = Told(lambda: None)
    asked = time.monotonic()

    def emit(name: str, data: Any) -> None:
        told.emit(name, data)
        if len(told.events) == 2:
            times.ask("share")

    lock = gpu_lock.begin(str(tmp_path), CPU, emit, told.move)
    took = time.monotonic() - asked
    assert len(told.events) >= 3, "it says so before it is over, or the limits on its time would end it"
    assert sum(told.events) == pytest.approx(told.moved) == pytest.approx(lock.waited)
    assert 0.9 <= lock.waited <= took
    gpu_lock.end(lock)


def test_who_waited_too_long_does_not_time(other, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_lock, "MOST_SECONDS", 0.3)
    lock = gpu_lock.begin(str(tmp_path), CPU, lambda *_: None)
    other()
    with pytest.raises(failures.Failure) as failure, gpu_lock.alone(lock):
        pytest.fail("it timed beside another one")
    assert failure.value.status == "timeout" and "other kernel-lsp processes checked or timed" in failure.value.reason
    assert free(tmp_path, "LOCK_SH"), "it checks again"
    gpu_lock.end(lock)


def test_who_waited_too_long_does_not_check(other, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_lock, "MOST_SECONDS", 0.3)
    other().does("alone")
    with pytest.raises(errors.GpuTaken, match="other kernel-lsp processes checked or timed on this GPU"):
        gpu_lock.begin(str(tmp_path), CPU, lambda *_: None)


@pytest.mark.slow
def test_who_gave_way_for_too_long_says_that_the_gpu_was_taken_and_nothing_of_a_candidate(other, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_lock, "MOST_SECONDS", 0.3)
    lock = gpu_lock.begin(str(tmp_path), CPU, lambda *_: None)
    other().ask("alone")
    time.sleep(0.3)  # it waits for what is shared here
    with pytest.raises(errors.GpuTaken, match="cpu was not free"):
        gpu_lock.give_way(lock)
    gpu_lock.end(lock)


def test_without_a_folder_that_can_be_written_it_goes_on(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("no folder")
    for folder in (None, "", str(taken), "/proc/no-such-folder"):
        lock = gpu_lock.begin(folder, CPU, lambda *_: pytest.fail("it waits"))
        with gpu_lock.alone(lock):
            pass
        gpu_lock.end(lock)
    assert taken.read_text() == "no folder"


def test_what_waits_is_told_from_other_programs_by_the_lock_that_it_has_open(other, tmp_path):
    waits, stranger = other(), Other(tmp_path / "another")
    try:
        stranger.heard("shared")
        running = [waits.process.pid, stranger.process.pid]
        assert waits.process.pid in gpu_contention.waiting(running, str(tmp_path / "cpu.lock"))
        assert gpu_contention.waiting(running[1:], str(tmp_path / "cpu.lock")) == set()
        assert gpu_contention.waiting(running, "") == set()
    finally:
        stranger.process.kill()
        stranger.forked.ended()
        stranger.forked.close()
