"""What a client shows that asks for lenses when it is told to, as editors do, and not all the time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from lsprotocol import types

from kernel_lsp import schema
from kernel_lsp.jobs import Job
from kernel_lsp.server.model.records import Record
from kernel_lsp.server.text.one_line import running_words
from tests.checking.scratch import write_kernel, write_module
from tests.server.lsp_client import Client

OPTIONS = {"settings": {"device": "interpreter", "generators": ["synthesizer"]}}


class Editor:
    """The lenses that an editor shows: it asks once no refresh request has come for ``quiet`` seconds (VS Code: 0.375)."""

    def __init__(self, client: Client, uris: list[str], quiet: float) -> None:
        self.client, self.uris, self.quiet = client, uris, quiet
        self.shown: dict[str, list[str]] = {}
        self.closed = False

    async def ask(self) -> None:
        for uri in self.uris:
            self.shown[uri] = await self.client.lenses(uri)

    async def follow(self) -> None:
        known, due = self._told(), None
        while not self.closed:
            if self._told() != known:
                known, due = self._told(), time.monotonic() + self.quiet
            if due is not None and time.monotonic() >= due:
                due = None
                await self.ask()
            await asyncio.sleep(0.005)

    def _told(self) -> int:
        return self.client.requests.count(types.WORKSPACE_CODE_LENS_REFRESH)


@asynccontextmanager
async def showing(client: Client, uris: list[str], quiet: float) -> AsyncIterator[Editor]:
    editor = Editor(client, uris, quiet)
    await editor.ask()
    following = asyncio.create_task(editor.follow())
    try:
        yield editor
    finally:
        editor.closed = True  # not cancelled: an answer that comes to a request given up is an error of the client's
        await following


@asynccontextmanager
async def meanwhile(work: AsyncIterator[None]) -> AsyncIterator[None]:
    over = asyncio.Event()

    async def run() -> None:
        async for _ in work:
            if over.is_set():
                return

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        assert not task.done(), task.exception()
        over.set()
        await task


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Two files with a class and its kernel each, in one project."""
    (tmp_path / "pyproject.toml").write_text("")
    for name in ("First", "Second"):
        write_module(tmp_path / f"{name.lower()}.py", name, "x * 0.5")
        write_kernel(tmp_path / f"{name.lower()}.py", name)
    return [tmp_path / "first.py", tmp_path / "second.py"]


async def test_a_lens_keeps_up_while_another_job_changes_its_own_all_the_time(client: Client, two: list[Path]) -> None:
    """Two jobs at once. With a request at each change of the second, an editor that waits for quiet would never ask."""
    await client.start(two[0].parent, options=OPTIONS)
    first, second = [client.open(path) for path in two]

    async def to_and_fro() -> AsyncIterator[None]:
        while True:
            job = await client.execute("kernelLsp.generate", {"uri": second, "className": "Second", "version": 1})
            await asyncio.sleep(0.1)
            await client.execute("kernelLsp.cancel", {"jobId": job})
            await asyncio.sleep(0.1)
            yield

    async with showing(client, [first, second], quiet=0.375) as editor, meanwhile(to_and_fro()):
        before = editor.shown[first]
        job = await client.execute("kernelLsp.generate", {"uri": first, "className": "First", "version": 1})
        await client.until(lambda: editor.shown[first][0].startswith("…"), 30)
        await client.execute("kernelLsp.cancel", {"jobId": job})
        await client.until(lambda: editor.shown[first] == before, 30)


def test_checks_that_follow_a_first_verdict_are_of_the_same_candidate() -> None:
    candidate = schema.Candidate("", "synthesizer")
    report = schema.Report(schema.Target("", "First"), candidates=[schema.Validated(candidate, schema.Verdict("ok"))])
    report.sources = [schema.Source("synthesizer", expected=3)]
    job = Job("generate-1", "generate", report.target, Path("first.py"), report=report, number=1)
    assert running_words(Record(job=job, stage="check")) == "… validating 1/3"
    assert running_words(Record(job=job, stage="introspect")) == "… generating"
    job.kind = "validate"
    assert {running_words(Record(job=job, stage=stage)) for stage in ("introspect", "check")} == {"… validating"}
    job.kind = "generate"
