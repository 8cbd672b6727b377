"""A listener that remembers, and modules that take as long as a test needs."""

from __future__ import annotations

import asyncio
import textwrap
import time
from pathlib import Path

import pytest

from kernel_lsp import schema
from kernel_lsp.jobs import Job, Jobs
from kernel_lsp.settings import Settings, load

SAMPLES = Path(__file__).resolve().parents[2] / "samples"

SLEEPER = """
import time
import torch

class Sleeper(torch.nn.Module):
    def forward(self, x):
        open(__file__ + ".here", "w").close()
        time.sleep(600)
        return x

def get_inputs():
    return [torch.randn(4)]
"""

TINY = '''
import torch

class Tiny(torch.nn.Module):
    """Twice the input, and one."""

    def forward(self, x):
        return x * 2 + 1

def get_inputs():
    return [torch.randn(8, 64)]
'''


class Memory:
    """Remembers what it was told, with the time."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Job, tuple]] = []
        self.states: list[tuple[str, int | None]] = []
        self.last_heard = 0.0

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        self.calls.append(("progress", job, (stage, message, percentage)))
        self.last_heard = time.monotonic()

    def verdict(self, job: Job) -> None:
        self.calls.append(("verdict", job, ()))
        self.states.append((job.state, job.report.chosen if job.report else None))

    def finished(self, job: Job) -> None:
        self.calls.append(("finished", job, ()))

    def named(self, name: str, job: Job) -> list[tuple]:
        return [arguments for call, about, arguments in self.calls if call == name and about is job]


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def module(tmp_path):
    """Write a module and return its path."""

    def write(text: str = TINY, name: str = "module.py") -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture
async def make_jobs(memory):
    """Jobs with settings given by name; closed afterwards."""
    made: list[Jobs] = []

    def make(**options) -> Jobs:
        def settings_for(path: Path) -> Settings:
            settings, problems = load(path, cli=options)
            assert not problems
            return settings

        made.append(Jobs(settings_for, memory))
        return made[-1]

    yield make
    for jobs in made:
        await jobs.close()


def target(path: Path, class_name: str, version: int | None = None) -> schema.Target:
    return schema.Target(path.as_uri(), class_name, version)


async def over(job: Job, seconds: float = 90) -> Job:
    """Wait until the job is over."""
    assert job.task is not None
    await asyncio.wait([job.task], timeout=seconds)
    await asyncio.sleep(0)  # a task that never began is ended by its callback
    assert job.over, f"{job.id} is still {job.state} after {seconds} s"
    return job


async def until_it_sleeps(job: Job, seconds: float = 60) -> None:
    """Wait until the worker is in the Sleeper's forward."""
    here = Path(f"{job.path}.here")
    deadline = time.monotonic() + seconds
    while not here.exists():
        assert not job.over, job.error
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
