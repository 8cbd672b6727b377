"""What stands at the end of a job's progress: what came of it, in words that need no knowledge of how it was done."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp import schema
from kernel_lsp.jobs.job import Job, Kind
from kernel_lsp.server.model.records import Record
from kernel_lsp.server.text.one_line import outcome_words, running_words
from tests.server.lsp_client import Client


def timing(median: float) -> schema.Timing:
    return schema.Timing(median, median, median, 50)


def done(kind: Kind, verdict: schema.Verdict, measurement: schema.Measurement | None = None, why: str = "") -> Job:
    about = schema.Target("file:///a.py", "A")
    chosen = 0 if verdict.status in schema.CORRECT else None
    candidate = schema.Candidate("", "synthesizer", variant="num_warps=8")
    entry = schema.Validated(candidate, verdict, measurement)
    report = schema.Report(about, candidates=[entry], chosen=chosen, why=why)
    return Job(f"{kind}-1", kind, about, Path("/a.py"), state="done", report=report)


SHAPE = schema.ShapeMeasurement([], eager=timing(231.0), compiled=timing(124.0), kernel=timing(100.0))


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (
            done("generate", schema.Verdict("ok"), schema.Measurement([SHAPE]), "The fastest of 6 schedules. (recall: …)"),
            "Correct: 2.31× eager · 1.24× compile",
        ),
        (done("generate", schema.Verdict("ok"), why="The first correct candidate."), "Correct, not timed"),
        (
            done("generate", schema.Verdict("wrong", reason="it is off by 2"), why="None of 1 candidates is correct: …"),
            "No correct kernel: it is off by 2",
        ),
        (done("validate", schema.Verdict("ok")), "Correct, not timed"),
        (
            done("validate", schema.Verdict("ok"), why="It takes 8 % longer than the kernel before."),
            "Correct, not timed. It takes 8 % longer than the kernel before.",
        ),
        (
            done("validate", schema.Verdict("wrong", reason="it is off by 2"), why="it is off by 2"),
            "The kernel is not usable (wrong): it is off by 2",
        ),
        (
            done("validate", schema.Verdict("outdated", reason="A changed"), why="A changed"),
            "The kernel is out of date: A changed",
        ),
    ],
)  # fmt: skip
def test_what_came_of_a_job(job: Job, said: str) -> None:
    assert outcome_words(job) == said


def test_who_wrote_the_kernel_is_said_where_a_model_was_asked() -> None:
    job = done("generate", schema.Verdict("ok"))
    assert job.report is not None
    job.report.sources = [schema.Source("synthesizer"), schema.Source("openai", model="m")]
    assert outcome_words(job) == "Correct, not timed; written by rule"


def test_no_stage_has_the_name_of_a_request() -> None:
    job = done("validate", schema.Verdict("ok"))
    job.report = None
    stages = ("introspect", "synthesize", "check", "compile", "time", "tune")
    words = {running_words(Record(job=job, stage=stage)) for stage in stages}
    assert words == {"… validating", "… compiling", "… measuring", "… tuning"}


@pytest.mark.timeout(60)
async def test_errors_name_files_from_the_workspace_folder_on(client: Client, module: Path) -> None:
    (module.parent / "model").mkdir()
    inner = module.rename(module.parent / "model" / module.name)
    await client.start(module.parent)
    uri = client.open(inner)
    inner.unlink()
    await client.execute("kernelLsp.generate", {"uri": uri, "className": "Double", "version": 1})
    await client.until(lambda: client.messages and client.diagnostics.get(uri), 30)
    said = [client.messages[0].message, client.diagnostics[uri][0].message]
    assert all(text.startswith("model/double.py is not on disk.") for text in said), said
