"""A worker that waits for others to be done with the GPU says so, and no limit of time counts it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from kernel_lsp import errors, schema
from kernel_lsp.jobs import device_requests
from kernel_lsp.jobs.client import Worker
from kernel_lsp.jobs.job import Job
from kernel_lsp.jobs.run import Run
from kernel_lsp.settings import Settings
from kernel_lsp.worker import children

#: Waits for 1.5 s, as often as a worker says so, and then takes as long as it is told to.
WORKER = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    def say(**what):
        print(json.dumps({"id": message["id"], **what}), flush=True)
    if message["method"] == "hello":
        say(result={"python": "3"})
    elif message["method"] == "baseline":
        for _ in range(15):
            time.sleep(0.1)
            say(event="waiting", data={"seconds": 0.1})
        time.sleep(60 if message["params"]["modes"] == ["stuck"] else 0)
        say(result={"modes": {}, "missing": {}})
    elif message["method"] == "cancel":
        pass
    elif message["method"] == "shutdown":
        break
"""


@pytest.fixture
async def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kernel_lsp.jobs.run.LEAST_SECONDS", 0.1)
    monkeypatch.setattr("kernel_lsp.jobs.run.GRACE_SECONDS", 0.3)
    (tmp_path / "worker.py").write_text(WORKER)
    about = schema.Target("file:///a.py", "A")
    worker = Worker([sys.executable], main=tmp_path / "worker.py")
    await worker.start()
    job = Job("generate-1", "generate", about, tmp_path / "a.py", kernel=tmp_path / "k.py")
    yield Run(job, Settings(root=tmp_path, seconds=0.5), worker, None, schema.Report(about))  # type: ignore[arg-type]
    await worker.close()


async def test_a_job_whose_worker_waits_longer_than_its_budget_goes_on(run: Run) -> None:
    answer = await device_requests.baseline(run, ["default"])
    assert answer == {"modes": {}, "missing": {}}
    assert run.report.spent["waiting"] == pytest.approx(1.5)
    assert 0 < run.remaining() <= 0.5, "what it waited is not on its budget"


async def test_one_that_is_stuck_afterwards_is_ended(run: Run) -> None:
    with pytest.raises(errors.WorkerTimedOut):
        await asyncio.wait_for(device_requests.baseline(run, ["stuck"]), 5)
    assert run.report.spent["waiting"] == pytest.approx(1.5)


async def test_the_workers_own_limit_does_not_count_it_either() -> None:
    told: list[str] = []
    child = children.Child(lambda name, data: told.append(name))
    ended = asyncio.create_task(children._ended(child, 0.2))
    for _ in range(5):
        await asyncio.sleep(0.1)
        child.hear({"event": "waiting", "data": {"seconds": 0.1}})
    assert not ended.done() and told == ["waiting"] * 5, "the job is told, too"
    with pytest.raises(errors.WorkerTimedOut):
        await asyncio.wait_for(ended, 5)
