"""What a job has at hand while it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kernel_lsp import schema
from kernel_lsp.jobs import Jobs
from kernel_lsp.jobs.gpu_turns import GpuTurns
from kernel_lsp.jobs.job import Job
from kernel_lsp.jobs.run import Run
from kernel_lsp.settings import Settings
from tests.store import made


async def test_waiting_for_the_gpu_is_not_on_the_budget(tmp_path: Path) -> None:
    """As where two problems of a benchmark share one GPU."""
    gpu, order = GpuTurns(), []

    def run(name: str) -> Run:
        about = schema.Target("file:///a.py", name)
        job = Job("generate-1", "generate", about, tmp_path / "a.py")
        found = Run(job, Settings(root=tmp_path), None, None, schema.Report(about), gpu=gpu)  # type: ignore[arg-type]
        found.report.device = made.DEVICE
        return found

    async def work(one: Run) -> float:
        before = one.remaining()
        async with one.timing():
            order.append(f"{one.job.target.class_name} begins")
            left = before - one.remaining()
            await asyncio.sleep(0.3)
            order.append(f"{one.job.target.class_name} ends")
        return left

    first, second = run("First"), run("Second")
    lost = await asyncio.gather(work(first), work(second))
    assert order == ["First begins", "First ends", "Second begins", "Second ends"]
    assert second.report.spent["waiting"] >= 0.29 > first.report.spent.get("waiting", 0.0)
    assert max(lost) < 0.2, "it waited 0.3 s, which is not on its budget"


async def test_the_worker_is_told_the_quota_of_an_evaluations_job_and_none_of_others(tmp_path: Path) -> None:
    jobs = Jobs(lambda file: Settings(root=tmp_path), None)  # type: ignore[arg-type]
    found = []
    for quota in ((17_000_000_000, 80_000_000_000), None):
        target = schema.Target("file:///a.py", "A")
        job = jobs.submit("generate", target, tmp_path / "a.py", quota=quota)
        jobs.cancel(job.id)
        run = Run(job, Settings(root=tmp_path), None, None, schema.Report(target))  # type: ignore[arg-type]
        found.append(run.params()["quota"])
    assert found == [(17_000_000_000, 80_000_000_000), None]
    await jobs.close()
