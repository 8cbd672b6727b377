"""A language model and the candidates on one GPU: what is timed, and when."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernel_lsp import schema
from kernel_lsp.jobs import Job
from tests.tiny_model.cache import trained
from tests.tiny_model.cases import CASES

from .conftest import Memory, over, target

pytestmark = [pytest.mark.models, pytest.mark.gpu, pytest.mark.timeout(600)]


async def test_samples_are_validated_while_the_model_generates_and_timed_when_it_rests(
    make_jobs, memory: Memory, tmp_path
):
    path = Path(shutil.copy(CASES["SquaredReLU"].path, tmp_path))
    kernelllm = {"model": str(trained()), "dtype": "fp32"}
    jobs = make_jobs(generators=["kernelllm", "synthesizer"], kernelllm=kernelllm, device="cuda", samples=10)
    job: Job = await over(jobs.submit("generate", target(path, "SquaredReLU"), path), 240)
    assert job.state == "done", job.error
    report = job.report
    model, rules = report.sources
    assert model.device.startswith("cuda") and model.samples == 10
    own = [entry for entry in report.candidates if entry.candidate.generator == "kernelllm"]
    verdicts = [(entry.verdict.status, entry.verdict.reason) for entry in own]
    assert model.correct >= 2 and len(model.equal_to) >= 1, (
        verdicts
    )  # two right answers that differ, and some given twice
    assert len(own) + len(model.equal_to) == 10 and model.not_validated == 0
    assert model.best is not None and rules.best is not None
    for entry in report.candidates:
        timed = entry.measurement is not None and any(shape.kernel for shape in entry.measurement.shapes)
        assert timed == (entry.verdict.status in schema.CORRECT), entry
    assert f"kernelllm: 10 samples, {model.correct} correct, best {model.best:.2f}×" in report.why
    # Tokens come first, then timings: never one between the other.
    told = [(stage, message) for stage, message, _ in memory.named("progress", job)]
    tokens = [i for i, (_, message) in enumerate(told) if "tokens" in message]
    timings = [i for i, (stage, _) in enumerate(told) if stage in ("time", "measuring")]
    assert tokens and timings and max(tokens) < min(timings), told
