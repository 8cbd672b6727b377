"""Estimates of an idle worker: what they say, and that no job waits for one."""

import asyncio
import time

import pytest

from kernel_lsp import errors

from .conftest import SLEEPER, TINY, over, target, until_it_sleeps

SLOW_IMPORT = """
import time
open(__file__ + ".here", "w").close()
time.sleep(600)
"""


@pytest.mark.slow
async def test_an_estimate_is_dropped_for_a_job_and_made_beside_none(make_jobs, memory, module):
    """One worker for all of it, because a worker takes seconds to warm up."""
    jobs, tiny = make_jobs(device="interpreter", estimate_gpu="L4"), module(TINY)
    await jobs.ready(tiny)
    pids = jobs.worker_pids()
    found = await jobs.estimate(tiny, "Tiny")
    assert found is not None and found.target == "L4"
    assert (found.launches, found.kernel_launches) == (2, 1)
    assert memory.calls == [], "it is no job"

    # A job that is submitted meanwhile does not wait for it.
    slow = module(SLOW_IMPORT + TINY, "slow.py")
    asking = asyncio.create_task(jobs.estimate(slow, "Tiny"))
    here = slow.with_name("slow.py.here")
    deadline = time.monotonic() + 60
    while not here.exists():
        assert not asking.done() and time.monotonic() < deadline
        await asyncio.sleep(0.02)
    job = jobs.submit("generate", target(tiny, "Tiny"), tiny)
    with pytest.raises(errors.Cancelled):
        await asyncio.wait_for(asking, 5)
    await over(job)
    assert job.state == "done", job.error
    assert jobs.worker_pids() == pids, "nothing was killed for it"

    # While somebody waits for a job none is begun.
    sleeper = module(SLEEPER, "sleeper.py")
    waiting = jobs.submit("generate", target(sleeper, "Sleeper"), sleeper)
    await until_it_sleeps(waiting)
    with pytest.raises(errors.Cancelled):
        await asyncio.wait_for(jobs.estimate(tiny, "Tiny"), 5)
    jobs.cancel(waiting.id)
    await over(waiting, 5)
