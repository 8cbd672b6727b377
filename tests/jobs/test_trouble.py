"""Real workers that are killed, stopped, cancelled or cannot start; the queue survives all of it."""

import asyncio
import os
import signal
import stat
import sys
import time
from pathlib import Path

import psutil
import pytest
from pygls.uris import to_fs_path

from kernel_lsp import errors, kernel_file

from .conftest import SLEEPER, TINY, over, target, until_it_sleeps


def processes_of(jobs):
    """The workers and everything below them; other tests' workers live on beside them."""
    workers = [psutil.Process(pid) for pid in jobs.worker_pids()]
    return workers + [child for worker in workers for child in worker.children(recursive=True)]


async def test_a_worker_killed_in_the_middle_is_reported_and_started_again(make_jobs, module):
    jobs, path = make_jobs(), module(SLEEPER)
    job = jobs.submit("generate", target(path, "Sleeper"), path)
    await until_it_sleeps(job)
    (pid,) = jobs.worker_pids()
    os.kill(pid, signal.SIGKILL)
    await over(job, 5)
    assert job.state == "failed"
    assert isinstance(job.error, errors.WorkerDied)
    assert "SIGKILL" in str(job.error)
    hello = await jobs.hello(path)
    assert hello["interpreter"]
    assert jobs.worker_pids() not in ([], [pid])


async def test_a_process_that_the_worker_needs_is_killed(make_jobs, module):
    """The message says so, and nothing of what the others write as they end."""
    named = 'with open(__file__ + ".pid", "w") as file: file.write(str(__import__("os").getpid()))\n        '
    jobs, path = make_jobs(), module(SLEEPER.replace("open(", named + "open(", 1))
    job = jobs.submit("generate", target(path, "Sleeper"), path)
    await until_it_sleeps(job)
    _, warm, *_ = psutil.Process(int(Path(f"{path}.pid").read_text())).parents()  # above the request and its attempt
    warm.kill()
    await over(job, 5)
    assert str(job.error) == str(errors.WorkerDied(detail="one of its processes ended"))


async def test_cancel_leaves_an_idle_worker_within_a_second_or_none(make_jobs, memory, module):
    """One worker for all of it, because a worker takes seconds to warm up."""
    jobs, path, other = make_jobs(), module(SLEEPER), module(TINY, "other.py")
    job = jobs.submit("generate", target(path, "Sleeper"), path)
    await until_it_sleeps(job)
    pids = jobs.worker_pids()

    # What waits can be cancelled, a newer version replaces an older, and the same is not queued twice.
    first = jobs.submit("generate", target(other, "Tiny", 1), other)
    assert jobs.submit("generate", target(other, "Tiny", 1), other) is first
    second = jobs.submit("generate", target(other, "Tiny", 2), other)
    await over(first, 1)
    assert first.state == "cancelled"
    await asyncio.sleep(0.05)
    assert memory.named("progress", second) == [("queued", "Waiting for the job before", 0)]
    assert [active.id for active in jobs.active()] == [job.id, second.id]
    jobs.cancel(second.id)
    await over(second, 1)
    assert job.state == "running"

    # The running one ends within a second, and its worker goes on.
    began = time.monotonic()
    assert jobs.cancel(job.id)
    await over(job, 5)
    assert time.monotonic() - began < 1.0
    assert (job.state, type(job.error)) == ("cancelled", errors.Cancelled)
    assert jobs.worker_pids() == pids
    assert len(memory.named("finished", job)) == 1
    assert not jobs.cancel(job.id)

    # A worker that does not answer the cancel is killed.
    os.unlink(f"{path}.here")
    job = jobs.submit("generate", target(path, "Sleeper"), path)
    await until_it_sleeps(job)
    os.kill(pids[0], signal.SIGSTOP)
    began = time.monotonic()
    jobs.cancel(job.id)
    await over(job, 5)
    assert time.monotonic() - began < 1.0
    while psutil.pid_exists(pids[0]):  # killed, and reaped within the second
        assert time.monotonic() - began < 1.0
        await asyncio.sleep(0.01)


async def test_a_worker_that_hangs_meets_the_deadline(make_jobs, module, monkeypatch):
    monkeypatch.setattr("kernel_lsp.jobs.run.LEAST_SECONDS", 0.5)
    monkeypatch.setattr(os, "getloadavg", lambda: (1000.0, 0.0, 0.0))
    jobs, path = make_jobs(seconds=4.0), module(SLEEPER)
    job = jobs.submit("generate", target(path, "Sleeper"), path)
    await over(job, 15)
    assert isinstance(job.error, errors.WorkerTimedOut)
    assert "kernelLsp.seconds" in str(job.error) and "This machine is busy: 1000 processes" in str(job.error)
    assert job.error.values["seconds"] <= 4.0, "the time that the user gave"


async def test_close_leaves_no_process_within_two_seconds(make_jobs, module):
    jobs, path = make_jobs(), module(SLEEPER)
    job = jobs.submit("generate", target(path, "Sleeper"), path)
    waiting = jobs.submit("generate", target(module(name="other.py"), "Tiny"), path)
    await until_it_sleeps(job)
    left = processes_of(jobs)
    assert left
    began = time.monotonic()
    await jobs.close()
    assert time.monotonic() - began < 2.0
    assert (job.state, waiting.state) == ("cancelled", "cancelled")
    _, alive = psutil.wait_procs(left, timeout=5)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("interpreter", ["/no/such/python", "/etc/hostname"])
async def test_an_interpreter_that_is_not_one(make_jobs, module, interpreter):
    jobs, path = make_jobs(interpreter=interpreter), module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path), 10)
    assert isinstance(job.error, errors.InterpreterMissing)
    assert interpreter in str(job.error)
    assert "kernelLsp.interpreter" in str(job.error)


async def test_an_interpreter_that_dies_at_once_says_its_last_words(make_jobs, module, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'libpython3.11.so: cannot open shared object file' >&2\nexit 127\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    jobs, path = make_jobs(interpreter=str(broken)), module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path), 10)
    assert isinstance(job.error, errors.InterpreterMissing)
    assert "cannot open shared object file" in str(job.error)


async def test_an_interpreter_without_torch_says_how_to_get_it(make_jobs, module, tmp_path):
    (tmp_path / "bare").mkdir()
    bare = tmp_path / "bare" / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # -S: no site-packages
    bare.chmod(0o755)
    jobs, path = make_jobs(interpreter=str(bare)), module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path), 10)
    assert isinstance(job.error, errors.PackageMissing)
    assert "torch" in str(job.error) and "pip install" in str(job.error)


async def test_a_prefix_goes_in_front_of_the_interpreter(make_jobs, module, tmp_path):
    wrapper = tmp_path / "on-the-gpu-box"
    wrapper.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/seen\nexport THROUGH=wrapper\n"$@"\n')
    wrapper.chmod(0o755)
    jobs, path = make_jobs(worker_prefix=[str(wrapper), "--gres=gpu:1"], interpreter=sys.executable), module()
    wrapper.write_text(wrapper.read_text().replace('\n"$@"', '\nshift\n"$@"'))
    hello = await jobs.hello(path)
    assert hello["python"].startswith("3.")
    assert (tmp_path / "seen").read_text().startswith(f"--gres=gpu:1 {sys.executable} ")
    left = processes_of(jobs)
    assert left
    await jobs.close()
    _, alive = psutil.wait_procs(left, timeout=5)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


async def test_a_prefix_that_is_not_there(make_jobs, module):
    jobs, path = make_jobs(worker_prefix=["no-such-ssh", "box"]), module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path), 10)
    assert isinstance(job.error, errors.InterpreterMissing)
    assert "no-such-ssh" in str(job.error)


async def test_a_file_that_is_not_on_disk_yet(make_jobs, tmp_path):
    path = tmp_path / "unsaved.py"
    jobs = make_jobs()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path, TINY), 10)
    assert isinstance(job.error, errors.NotSavedYet)
    assert jobs.worker_pids() == []


@pytest.mark.parametrize("name", [b"caf\xe9/module.py", b"folder/caf\xe9.py"])
@pytest.mark.parametrize("by_uri", [False, True])
async def test_a_path_that_is_not_utf8_is_refused_with_its_reason(make_jobs, tmp_path, name, by_uri):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    path.parent.mkdir()
    path.write_text(TINY)
    if by_uri:  # as an editor's URI arrives
        path = Path(to_fs_path(path.as_uri()))
    jobs = make_jobs()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path), 10)
    assert isinstance(job.error, errors.PathNotUtf8)
    assert "UTF-8" in str(job.error) and "Rename" in str(job.error)
    str(job.error).encode()  # it can be shown everywhere
    assert jobs.worker_pids() == []


async def test_an_edited_kernel_file_is_refused_before_any_work(make_jobs, module):
    path = module()
    kernel = path.parent / "kernels" / "tiny_triton.py"
    kernel.parent.mkdir()
    edited = kernel_file.assemble({"source": "module.py::Tiny", "class": "Tiny"}, "X = 1\n") + "# mine\n"
    kernel.write_text(edited)
    jobs = make_jobs()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path), 10)
    assert isinstance(job.error, errors.KernelFileEdited)
    assert jobs.worker_pids() == []
    assert kernel.read_text() == edited


async def test_an_error_of_the_listener_decides_nothing(make_jobs, memory, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "finished", lambda job: 1 / 0)
    path = tmp_path / "unsaved.py"
    job = await over(make_jobs().submit("generate", target(path, "Tiny"), path), 10)
    assert isinstance(job.error, errors.NotSavedYet)
