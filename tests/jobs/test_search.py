"""The search around a language model: repair rounds, narrower candidates, equal ones. The server is scripted, the rest real."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp import kernel_file
from kernel_lsp.jobs import Job

from .chat_server import ChatServer, Messages
from .conftest import over, target

pytestmark = [pytest.mark.models, pytest.mark.timeout(180)]

MODULE = """
import torch

class Third(torch.nn.Module):
    def forward(self, x):
        return x * 3 + 1

def get_inputs():
    return [torch.randn(4, 64)]
"""

ANSWER = """Here it is.

```python
import torch
import triton
import triton.language as tl

@triton.jit
def third_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * FACTOR + 1.0, mask=mask)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        third_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
        return out
```
"""
RIGHT, WRONG = ANSWER.replace("FACTOR", "3.0"), ANSWER.replace("FACTOR", "2.0")
BROKEN = ANSWER.replace("FACTOR", "undefined_name")
# The last few elements are left out, unless their number is a multiple of 16: as if it had no mask.
UNMASKED = RIGHT.replace("mask = offsets < n\n", "mask = offsets < n // 16 * 16\n")


@pytest.fixture
def talker(request: pytest.FixtureRequest) -> Iterator[Callable[[Callable[[Messages], str]], ChatServer]]:
    made: list[ChatServer] = []

    def make(answer: Callable[[Messages], str]) -> ChatServer:
        made.append(ChatServer(answer))
        return made[-1]

    yield make
    for server in made:
        server.close()


async def run(make_jobs: Any, module: Any, server: ChatServer, **options: Any) -> tuple[Job, Path]:
    settings = {"device": "interpreter", "generators": ["openai"], "samples": 1, "openai": {"base_url": server.address}}
    jobs, path = make_jobs(**settings | options), module(MODULE)
    return await over(jobs.submit("generate", target(path, "Third"), path), 120), path


async def test_a_wrong_candidate_is_repaired_from_what_was_found(make_jobs, module, talker) -> None:
    server = talker(lambda messages: [BROKEN, WRONG, RIGHT][len(messages) // 2])
    job, _ = await run(make_jobs, module, server)
    assert job.state == "done", job.error
    report = job.report
    statuses = [entry.verdict.status for entry in report.candidates]
    assert statuses[1:] == ["wrong", "ok"] and statuses[0] not in ("ok", "wrong"), report.candidates
    assert [entry.candidate.parent for entry in report.candidates] == [None, 0, 1]
    assert report.chosen == 2
    (source,) = report.sources
    assert (source.samples, source.correct, source.rounds, source.model) == (3, 1, 2, "talker")
    # What the model was told: its own answer, and what was found, with the place.
    last = server.conversations[-1]
    assert [message["role"] for message in last] == ["user", "assistant", "user", "assistant", "user"]
    assert last[1]["content"] == BROKEN and "undefined_name" in last[2]["content"]
    assert report.candidates[1].verdict.reason[:60] in last[4]["content"]
    assert "class Model(" in last[0]["content"] and "x * 3 + 1" in last[0]["content"]
    assert "What is known of such kernels" in last[0]["content"] and "Elementwise work is bound" in last[0]["content"]


async def test_a_model_that_goes_on_does_not_hide_that_a_candidate_is_validated(
    make_jobs, module, talker, memory
) -> None:
    count = itertools.count()

    def answer(messages: Messages) -> str:
        number = next(count)
        time.sleep(2.0 * number)  # the next answers come while the first is validated
        return WRONG.replace("2.0", f"2.{number}")

    job, _ = await run(make_jobs, module, talker(answer), samples=3, rounds=0)
    assert job.number == len(job.report.candidates) == 3
    told = [arguments[0] if arguments else call for call, _, arguments in memory.calls]
    first = told[told.index("validating") : told.index("verdict")]
    assert "check" in first and "generating" not in first, told


async def test_rounds_are_bounded(make_jobs, module, talker) -> None:
    count = iter(range(100))
    server = talker(lambda messages: WRONG.replace("2.0", f"2.{next(count)}"))
    job, _ = await run(make_jobs, module, server, rounds=2)
    assert job.report.chosen is None
    assert len(server.conversations) == 3
    assert job.report.sources[0].rounds == 2


async def test_equal_answers_are_validated_once(make_jobs, module, talker) -> None:
    count = iter(range(100))
    server = talker(lambda messages: WRONG + "# take " + str(next(count)))
    job, _ = await run(make_jobs, module, server, samples=5, rounds=0)
    (source,) = job.report.sources
    assert (source.samples, source.equal_to) == (5, [0] * 4)
    assert len(job.report.candidates) == 1
    assert {entry.candidate.seed for entry in job.report.candidates} <= set(range(5))


async def test_right_at_the_examples_sizes_only_is_taken_for_those(make_jobs, module, talker) -> None:
    server = talker(lambda messages: UNMASKED)
    job, path = await run(make_jobs, module, server, rounds=0)
    assert job.state == "done", job.error
    first, narrower = job.report.candidates
    assert first.verdict.status == "wrong"
    assert narrower.verdict.status == "ok", narrower.verdict
    assert (narrower.candidate.parent, narrower.candidate.pinned) == (0, True)
    assert job.report.sources[0].samples == 1
    written = kernel_file.read(kernel_file.find_kernel(path, "Third"))
    assert "x.shape[0] == 4" in written.body and "x.shape[1] == 64" in written.body
    assert written.header["envelope"]["inputs"] == ["x: float32[4, 64]"]
    assert "sizes" not in written.header["envelope"]

    # Validated again, it is held to the same sizes: at others it is eager, which says nothing of the kernel.
    assert written.header["pinned"] is True
    jobs = make_jobs(device="interpreter")
    job = await over(jobs.submit("validate", target(path, "Third"), path), 60)
    assert job.state == "done" and job.report.chosen == 0, job.error
    again = kernel_file.read(kernel_file.find_kernel(path, "Third"))
    assert again.header["pinned"] is True
    checks = job.report.candidates[0].verdict.checks
    assert not [check.name for check in checks if check.name in ("odd sizes", "sizes of one", "no elements")]


UNTRACEABLE = MODULE.replace("return x * 3 + 1", "return x * 3 + 1 if x.isnan().sum().item() >= 0 else x")


async def test_repairs_of_what_cannot_be_exported_are_samples_too(make_jobs, module, talker) -> None:
    server = talker(lambda messages: [WRONG, RIGHT][len(messages) // 2])
    settings = {"device": "interpreter", "generators": ["openai"], "samples": 1, "openai": {"base_url": server.address}}
    jobs, path = make_jobs(**settings), module(UNTRACEABLE)
    job = await over(jobs.submit("generate", target(path, "Third"), path), 120)
    assert job.state == "done", job.error
    assert [entry.verdict.status for entry in job.report.candidates] == ["wrong", "ok"]
    assert all(entry.candidate.pinned and not entry.candidate.narrowed for entry in job.report.candidates)
    assert job.report.sources[0].samples == 2


@pytest.mark.parametrize("text", [MODULE, UNTRACEABLE])
async def test_a_pinned_kernel_that_an_earlier_version_stored_is_restored_as_one(
    make_jobs, module, talker, tmp_path, monkeypatch, text
) -> None:
    store = tmp_path / "store.sqlite"
    monkeypatch.setenv("KERNEL_LSP_STORE", str(store))
    server = talker(lambda messages: UNMASKED if text == MODULE else RIGHT)
    settings = {"device": "interpreter", "generators": ["openai"], "samples": 1, "openai": {"base_url": server.address}}
    jobs, path = make_jobs(**settings, rounds=0), module(text)
    job = await over(jobs.submit("generate", target(path, "Third"), path), 120)
    assert job.state == "done", job.error
    kernel = kernel_file.find_kernel(path, "Third")
    before = kernel_file.read(kernel)
    assert before.header["pinned"] is True
    with contextlib.closing(sqlite3.connect(store)) as connection, connection:  # as it was before settings held it
        connection.execute("update measurements set settings = '{}'")
        connection.execute("delete from verdict_graphs")
    kernel.unlink()
    job = await over(jobs.submit("restore", target(path, "Third"), path, body=before.actual_body), 120)
    assert job.state == "done", job.error
    again = kernel_file.read(kernel)
    assert (again.header["pinned"], again.header["envelope"]) == (True, before.header["envelope"])


async def test_a_models_kernel_is_recalled_for_a_renamed_class_and_the_model_is_not_asked(
    make_jobs, module, talker, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    server = talker(lambda messages: RIGHT)
    job, _ = await run(make_jobs, module, server)
    assert job.state == "done", job.error
    asked = len(server.conversations)
    path = module(MODULE.replace("Third", "Triple").replace("x", "hidden"), "triple.py")
    settings = {"device": "interpreter", "openai": {"base_url": server.address}}
    jobs = make_jobs(generators=["recall", "openai"], **settings)
    job = await over(jobs.submit("generate", target(path, "Triple"), path), 120)
    assert job.state == "done", job.error
    (validated,) = job.report.candidates
    assert (validated.candidate.generator, validated.verdict.status) == ("recall", "ok"), validated.verdict
    assert validated.candidate.note.startswith("talker, seed 0; of Third (module.py), validated on ")
    assert len(server.conversations) == asked


LIKE = """
import torch

class Fifth(torch.nn.Module):
    def forward(self, y):
        return y * 5 + 1

def get_inputs():
    return [torch.randn(4, 64)]
"""


async def test_the_prompt_holds_kernels_that_were_validated_for_like_modules(
    make_jobs, module, talker, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    path = module(LIKE, "like.py")
    jobs = make_jobs(device="interpreter", generators=["synthesizer"])
    job = await over(jobs.submit("generate", target(path, "Fifth"), path), 120)
    assert job.state == "done", job.error
    server = talker(lambda messages: RIGHT)
    job, _ = await run(make_jobs, module, server)
    assert job.state == "done", job.error
    asked = server.conversations[0][0]["content"]
    said = "Of a module with aten.add, aten.mul; validated on Triton interpreter (CPU):\n\n```python\n"
    assert f"Kernels of like modules that were validated as correct before:\n\n{said}" in asked
    assert "y * 5" in asked and "_in_envelope(self" not in asked and asked.count("Answer with one") == 1
