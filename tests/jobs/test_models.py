"""Jobs with language models: the tiny model through every real backend, and what goes wrong with them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kernel_lsp import errors, kernel_file, schema
from kernel_lsp.jobs import Job, Jobs
from kernel_lsp.settings import Settings, load
from tests.modelhost.failing_server import FailingServer
from tests.tiny_model.cache import trained
from tests.tiny_model.cases import CASES
from tests.tiny_model.serving import Served, free_port, serving

from .conftest import Memory, over, target

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

BACKENDS = ["kernelllm", "llama-cpp", "openai"]


class Bench:
    """Jobs that share a worker and the model hosts; ``run`` submits one with settings of its own."""

    def __init__(self, folder: Path, tiny: Path) -> None:
        self.folder, self.tiny = folder, tiny
        self.options: dict[str, Any] = {}
        self.memory = Memory()
        self.jobs = Jobs(self._settings, self.memory)

    def _settings(self, path: Path) -> Settings:
        settings, problems = load(path, cli=self.options)
        assert not problems, problems
        return settings

    def backend(self, name: str, server: str = "") -> dict[str, Any]:
        return {
            "generators": [name],
            "device": "interpreter",
            "samples": 1,
            "temperature": 0.0,
            "max_tokens": 600,
            "kernelllm": {"model": str(self.tiny), "device": "cpu", "dtype": "fp32"},
            "llama_cpp": {"model": str(self.tiny / "tiny.gguf"), "gpu_layers": 0, "context": 2048, "threads": 1},
            "openai": {"base_url": server, "api_key_env": "TINY_KEY", "mode": "completion", "retries": 1},
        }

    def submit(self, class_name: str, backend: dict[str, Any], **options: Any) -> Job:
        self.options = backend | options
        path = self.folder / CASES[class_name].path.name
        return self.jobs.submit("generate", target(path, class_name), path)

    async def run(self, class_name: str, backend: dict[str, Any], **options: Any) -> Job:
        return await over(self.submit(class_name, backend, **options), 120)


@pytest.fixture(scope="session")
def tiny() -> Path:
    return trained()


@pytest.fixture(scope="session")
def server(tiny: Path) -> Iterator[Served]:
    with serving(tiny / "tiny.gguf") as served:
        yield served


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bench(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").touch()
    for case in CASES.values():
        shutil.copy(case.path, folder)
    made = Bench(folder, tiny)
    yield made
    await made.jobs.close()
    assert made.jobs.model_host_pids() == [] and made.jobs.worker_pids() == []


@pytest.mark.parametrize("name", BACKENDS)
async def test_the_same_answer_becomes_a_validated_file(bench: Bench, server: Served, name: str) -> None:
    job = await bench.run("RMSNorm", bench.backend(name, server.address))
    assert job.state == "done", job.error
    report = job.report
    assert report.chosen == 0, report
    chosen = report.candidates[0]
    assert chosen.candidate.answer.strip() == CASES["RMSNorm"].greedy.strip()
    assert chosen.verdict.status == "ok"
    assert chosen.candidate.prompt_hash.startswith("sha256:")
    (source,) = report.sources
    assert (source.generator, source.samples, source.correct) == (name, 1, 1)
    assert source.tokens > 100 and source.tokens_per_second > 0 and source.seconds["generate"] > 0
    written = kernel_file.read(Path(report.file))
    assert (written.generator, written.claim.verdict.status) == (name, "ok")
    assert "class RMSNormTriton(RMSNorm):" in written.body and "is_cuda" not in written.body
    said = [arguments[1] for arguments in bench.memory.named("progress", job)]
    assert any("tokens" in words for words in said), said


@pytest.mark.parametrize(
    ("class_name", "status", "says"),
    [
        ("Leaky", "wrong", "error"),
        ("Clip", "compile-error", "power of 2"),
        ("SoftSign", "rejected", "does not parse"),
        ("Wave", "rejected", "no Python"),
    ],
)
async def test_what_cannot_be_used_says_why_and_where(bench: Bench, class_name: str, status: str, says: str) -> None:
    job = await bench.run(class_name, bench.backend("kernelllm"))
    assert job.state == "done", job.error
    (entry,) = job.report.candidates
    assert entry.verdict.status == status, entry.verdict
    assert says in entry.verdict.reason, entry.verdict
    assert entry.candidate.answer  # kept for the report
    if status == "rejected" and class_name == "SoftSign":
        assert 0 < entry.verdict.line <= len(entry.candidate.answer.splitlines())
    assert job.report.chosen is None and job.report.file is None
    assert entry.verdict.reason[:40] in job.report.why


async def test_the_first_correct_sample_ends_the_search_without_a_gpu(bench: Bench) -> None:
    job = await bench.run("SquaredReLU", bench.backend("kernelllm"), samples=10, temperature=0.6)
    assert job.state == "done", job.error
    report = job.report
    (source,) = report.sources
    assert report.candidates[report.chosen].verdict.status == "ok"
    assert source.correct == 1 and source.expected == 10
    assert source.samples == len(report.candidates) + source.not_validated + len(source.equal_to)
    assert f"kernelllm: {source.samples} samples, 1 correct" in report.why
    seeds = [entry.candidate.seed for entry in report.candidates]
    assert len(set(seeds)) == len(seeds) and all(0 <= seed < 10 for seed in seeds)


async def test_a_source_that_finds_nothing_leaves_the_field_to_the_next(bench: Bench) -> None:
    job = await bench.run("Leaky", bench.backend("kernelllm"), generators=["kernelllm", "synthesizer"])
    assert job.state == "done", job.error
    report = job.report
    assert report.candidates[report.chosen].candidate.generator == "synthesizer"
    assert [(source.generator, source.correct) for source in report.sources] == [("kernelllm", 0), ("synthesizer", 1)]
    assert "kernelllm: wrong; synthesizer: " in report.why and "chosen" in report.why


async def test_without_a_gpu_no_model_is_asked_once_a_kernel_is_correct(bench: Bench) -> None:
    job = await bench.run("RMSNorm", bench.backend("kernelllm"), generators=["synthesizer", "kernelllm"])
    assert job.state == "done", job.error
    assert "not asked" in job.report.sources[1].problem
    assert "no GPU" in job.report.why


async def test_both_prompt_and_answer_are_checked_against_the_context(bench: Bench) -> None:
    backend = bench.backend("kernelllm")
    backend["kernelllm"] |= {"context": 300}
    job = await bench.run("RMSNorm", backend)
    assert isinstance(job.error, errors.PromptTooLong), job.error


async def generating(bench: Bench, job: Job) -> None:
    """Wait until tokens are coming."""
    deadline = time.monotonic() + 60
    while not any("tokens" in arguments[1] for arguments in bench.memory.named("progress", job)):
        assert not job.over and time.monotonic() < deadline, job.error
        await asyncio.sleep(0.01)


LONG = {"samples": 200, "temperature": 0.6}  # long enough to be interrupted


@pytest.mark.parametrize("name", ["kernelllm", "llama-cpp"])
async def test_a_killed_host_ends_the_job_with_the_reason_and_the_next_one_works(bench: Bench, name: str) -> None:
    job = bench.submit("Wave", bench.backend(name), **LONG)
    await generating(bench, job)
    for pid in bench.jobs.model_host_pids():
        os.kill(pid, signal.SIGKILL)
    await over(job, 30)
    told = str(job.error) if job.error else job.report.why  # answers that were complete before are validated
    assert "SIGKILL" in told
    job = await bench.run("Leaky", bench.backend(name))
    assert job.state == "done", job.error


@pytest.mark.parametrize("name", BACKENDS)
async def test_a_cancel_stops_the_model_within_a_second(bench: Bench, server: Served, name: str) -> None:
    job = bench.submit("Wave", bench.backend(name, server.address), **LONG)
    await generating(bench, job)
    began = time.monotonic()
    bench.jobs.cancel(job.id)
    await over(job, 5)
    assert time.monotonic() - began < 1.0
    assert job.state == "cancelled"
    if name != "openai":  # the model is still there, idle
        (host,) = [h for h in bench.jobs._hosts._hosts.values() if h.client.pid and h.loaded.get("device") == "cpu"][:1]
        await asyncio.sleep(0.3)
        before = cpu_seconds(host.client.pid)
        await asyncio.sleep(0.5)
        assert cpu_seconds(host.client.pid) - before < 0.2


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_a_server_that_goes_away_mid_stream(bench: Bench, tiny: Path) -> None:
    port = free_port()
    with serving(tiny / "tiny.gguf", port=port) as gone:
        job = bench.submit("Wave", bench.backend("openai", gone.address), **LONG)
        await generating(bench, job)
        gone.process.kill()
        await over(job, 60)
        told = str(job.error) if job.error else job.report.why
        assert gone.address.removesuffix("/v1") in told or "127.0.0.1" in told
    with serving(tiny / "tiny.gguf", port=port) as back:
        job = await bench.run("RMSNorm", bench.backend("openai", back.address))
        assert job.state == "done", job.error


async def test_too_little_memory_for_the_model(bench: Bench) -> None:
    backend = bench.backend("kernelllm")
    backend["kernelllm"] |= {"memory": 0.0001}
    job = await bench.run("RMSNorm", backend)
    assert isinstance(job.error, errors.ModelTooLarge), job.error
    job = await bench.run("RMSNorm", bench.backend("kernelllm"))
    assert job.state == "done", job.error


async def test_a_model_that_is_not_there_names_the_command(bench: Bench) -> None:
    backend = bench.backend("kernelllm")
    backend["kernelllm"] |= {"model": "facebook/KernelLLM"}
    job = await bench.run("RMSNorm", backend)
    assert isinstance(job.error, errors.ModelMissing), job.error
    assert "kernel-lsp models pull" in str(job.error)


async def test_an_idle_model_is_unloaded(bench: Bench) -> None:
    backend = bench.backend("llama-cpp")
    backend["llama_cpp"] |= {"idle_seconds": 0.3}
    job = await bench.run("RMSNorm", backend)
    assert job.state == "done", job.error
    for host in bench.jobs._hosts._hosts.values():  # those of other tests have a longer time
        if host.loaded.get("name") == "tiny.gguf":
            deadline = time.monotonic() + 5
            while host.client.pid is not None:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            break
    else:
        assert not [h for h in bench.jobs._hosts._hosts if "llama-cpp" in h and bench.jobs._hosts._hosts[h].client.pid]
    job = await bench.run("RMSNorm", bench.backend("llama-cpp"))
    assert job.state == "done", job.error


async def test_a_key_is_sent_and_shown_nowhere(bench: Bench, server: Served, monkeypatch, caplog) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setenv("TINY_KEY", "sk-very-secret-0123456789")
    for host in bench.jobs._hosts._hosts.values():
        await host.client.stop()  # a host has the environment that it was started with
    job = await bench.run("RMSNorm", bench.backend("openai", server.address))
    assert job.state == "done", job.error
    broken = await bench.run("RMSNorm", bench.backend("openai", "http://127.0.0.1:9/v1"))
    assert isinstance(broken.error, errors.ModelServerUnreachable)
    everything = json.dumps(schema.to_json(job.report)) + str(broken.error) + caplog.text + repr(bench.memory.calls)
    assert "very-secret" not in everything + Path(job.report.file).read_text()


async def test_a_server_that_fails_for_good_ends_the_job_with_its_words(bench: Bench, server: Served) -> None:
    failing = FailingServer(server.address)
    try:
        for status, words in ((500, "on fire"), (429, "slow down"), (200, "<html>garbage</html>")):
            failing.faults = [partial(answer_with, status, words)] * 10
            job = await bench.run("RMSNorm", bench.backend("openai", failing.base_url))
            assert isinstance(job.error, errors.ModelServerFailed), (status, job.error)
            assert status == 200 or (str(status) in str(job.error) and words in str(job.error)), job.error
        failing.faults = [partial(answer_with, 503, "not yet")]  # once: it is asked again
        job = await bench.run("RMSNorm", bench.backend("openai", failing.base_url))
        assert job.state == "done" and job.report.chosen == 0, job.error
    finally:
        failing.close()


def answer_with(status: int, words: str, handler: Any) -> bool:
    body = json.dumps({"error": {"message": words}}).encode() if status != 200 else words.encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/json" if status != 200 else "text/event-stream")
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
    return True


async def test_a_cancel_is_quick_even_when_worker_and_host_do_not_answer(bench: Bench) -> None:
    job = bench.submit("SquaredReLU", bench.backend("llama-cpp"), **LONG)
    await generating(bench, job)
    stopped = [*bench.jobs.worker_pids(), *bench.jobs.model_host_pids()]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    bench.jobs.cancel(job.id)
    await over(job, 5)
    assert time.monotonic() - began < 1.0
    for pid in stopped:  # one that had nothing to do was not asked, and lives
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    job = await bench.run("RMSNorm", bench.backend("llama-cpp"))
    assert job.state == "done", job.error
