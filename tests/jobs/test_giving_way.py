"""A job beside an editor says what it waits for while its worker leaves the processor to other programs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kernel_lsp import schema
from kernel_lsp.jobs import Jobs, giving_way, pipelines
from kernel_lsp.jobs.job import Job
from kernel_lsp.jobs.run import Run
from kernel_lsp.settings import Settings

BUSY = "waits for other programs: 10 processes want 2 processors"


class Told:
    def __init__(self) -> None:
        self.messages: list[tuple[str, int]] = []

    def progress(self, job: Job, stage: str, message: str, percentage: int) -> None:
        self.messages.append((message, percentage))

    def verdict(self, job: Job) -> None:
        pass

    def finished(self, job: Job) -> None:
        self.messages.append(("over", 100))


async def _stand_still(run: Run) -> None:
    run.progress("generating", "Writing a kernel by rule", 10)
    await asyncio.sleep(0.3)
    run.progress("validating", "Validating candidate 1", 20)


async def messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, give_way: bool, prefix: tuple[str, ...] = ()
) -> list[tuple[str, int]]:
    """What a listener is told of a job that says nothing for a while on a busy machine."""
    monkeypatch.setattr(giving_way, "SECONDS", 0.05)
    monkeypatch.setattr("os.getloadavg", lambda: (10.0, 1.0, 1.0))
    monkeypatch.setattr("kernel_lsp.jobs.machine_load.processors", lambda: 2)
    monkeypatch.setitem(pipelines.PIPELINES, "generate", _stand_still)
    told = Told()
    jobs = Jobs(lambda _: Settings(root=tmp_path, worker_prefix=list(prefix)), told, give_way=give_way)
    job = jobs.submit("generate", schema.Target("file:///a.py", "A"), tmp_path / "a.py")
    assert job.task is not None
    await job.task
    await asyncio.sleep(0.15)  # nothing more is told of a job that is over
    await jobs.close()
    return told.messages


PLAIN = [("Writing a kernel by rule", 10), ("Validating candidate 1", 20), ("over", 100)]


async def test_what_a_job_waits_for_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = (f"Writing a kernel by rule ({BUSY})", 10)
    assert await messages(tmp_path, monkeypatch, give_way=True) == [PLAIN[0], waiting, *PLAIN[1:]]


async def test_a_worker_that_does_not_give_way_waits_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await messages(tmp_path, monkeypatch, give_way=False) == PLAIN


async def test_the_load_of_another_machine_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await messages(tmp_path, monkeypatch, give_way=True, prefix=("ssh", "box")) == PLAIN


async def test_it_is_taken_back_once_the_machine_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_way, "SECONDS", 0.05)
    told, words = Told(), [BUSY, BUSY, "", ""]
    job = Job("generate-1", "generate", schema.Target("file:///a.py", "A"), tmp_path / "a.py")
    async with giving_way.listening(told, lambda: words.pop(0) if words else "") as listener:
        listener.progress(job, "generating", "Writing", 10)
        await asyncio.sleep(0.4)
    assert [message for message, _ in told.messages] == ["Writing", f"Writing ({BUSY})", "Writing"]
