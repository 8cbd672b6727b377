"""One timing at a time on a GPU: two processes, one that is killed, a folder that cannot be written."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from kernel_lsp.validation import failures
from kernel_lsp.worker import gpu_lock

CPU = torch.device("cpu")
HOLDER = """
import sys, time, torch
from kernel_lsp.worker import gpu_lock
with gpu_lock.held(sys.argv[1], torch.device("cpu"), time.monotonic() + 30, print):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def hold(tmp_path: Path):
    """``hold(seconds)``: another process that holds the lock for so long, once it does."""
    started = []

    def start(seconds: float) -> subprocess.Popen:
        command = [sys.executable, "-c", HOLDER, str(tmp_path), str(seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout and process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_the_second_waits_says_so_and_goes_on_when_the_first_is_killed(hold, tmp_path):
    first, told = hold(60), []

    def emit(name, data):
        told.append(data["message"])
        first.kill()

    with gpu_lock.held(str(tmp_path), CPU, time.monotonic() + 30, emit):
        assert first.wait(5) == -9
    assert told == ["waiting for another kernel-lsp that is timing on this GPU"]


def test_who_waited_too_long_does_not_time(hold, tmp_path):
    hold(60)
    until = time.monotonic() + 0.3
    with pytest.raises(failures.Failure) as failure, gpu_lock.held(str(tmp_path), CPU, until, lambda *_: None):
        pytest.fail("it timed beside another one")
    assert failure.value.status == "timeout" and "another kernel-lsp was timing" in failure.value.reason
    assert 0 < time.monotonic() - until < 5


def test_without_a_folder_that_can_be_written_it_goes_on(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("no folder")
    for folder in (None, "", str(taken), "/proc/no-such-folder"):
        with gpu_lock.held(folder, CPU, time.monotonic(), lambda *_: None):
            pass
    assert taken.read_text() == "no folder"
