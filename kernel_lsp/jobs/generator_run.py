"""Asks one generator: its candidates are validated while it works on the next ones, and timed while no model generates."""

from __future__ import annotations

import ast
import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from kernel_lsp import errors, generators, schema
from kernel_lsp.jobs import device_requests
from kernel_lsp.jobs.formatting import format_source
from kernel_lsp.jobs.hosts import ModelHost
from kernel_lsp.jobs.ranking import fastest
from kernel_lsp.jobs.run import LEAST_SECONDS, Run

_CANDIDATES_FROM, _CANDIDATES_TO = 25.0, 95.0  # the part of the progress bar that belongs to the candidates
TIME_OVER = "the time was over"  # why a generator is not asked, as a clause
_TIMING_SECONDS = 8.0  # what timing one candidate takes, its checks made again included
_RESERVE = 0.15  # of the time budget, for timing what a model on the same GPU came up with
_NEAR_ROOFLINE = 0.95  # a kernel that reaches this share of the roofline leaves nothing to look for

#: what may be the fault of a schedule rather than of the kernel
_OF_THE_SCHEDULE = ("compile-error", "out-of-memory", "timeout", "crashed")

Proposal = schema.Candidate | list[schema.Candidate] | schema.Validated


class GeneratorRun:
    """One generator at work for one job. ``seen`` holds the syntax trees validated so far, of all generators."""

    def __init__(self, run: Run, name: str, seen: dict[str, int]) -> None:
        self.run = run
        self.name = name
        self.seen = seen
        self.source = schema.Source(name)
        self.generating = False  # a model of this job is generating on the GPU that the candidates are timed on
        self._queue: asyncio.Queue[Proposal | asyncio.Future[None] | None] = asyncio.Queue()
        self._untimed: list[schema.Validated] = []
        self._index: dict[int, int] = {}  # id of a candidate → of its entry in the report, or of its equal's
        self._kept: list[schema.Candidate] = []  # so that no id is used twice

    async def ask(self) -> None:
        """Validate what the generator proposes, as it comes.

        Raises:
            UserError: the generator's own; the class could not be run, or the worker died.
        """
        self.run.report.sources.append(self.source)
        if why := enough(self.run):
            self.source.problem = f"not asked, because {why}"
            return
        # Two tasks, so that a cancel reaches the worker and the model host at the same time.
        producer = asyncio.create_task(self._produce())
        consumer = asyncio.create_task(self._consume())
        try:
            await asyncio.wait({consumer})
        finally:
            for task in (consumer, producer):
                task.cancel()
            await asyncio.wait({consumer, producer})
        consumer.result()
        producer.result()

    async def _consume(self) -> None:
        while (item := await self._queue.get()) is not None:
            if isinstance(item, asyncio.Future):
                await self._time_untimed()
                item.set_result(None)
            else:
                await self._take(item)
        await self._time_untimed()

    async def _produce(self) -> None:
        run = self.run
        request = generators.Request(
            path=run.job.path,
            class_name=run.job.target.class_name,
            inputs=run.inputs(),
            device=run.settings.device,
            samples=run.settings.samples,
            ask_worker=run.ask_worker,
            progress=self._tell,
            settings=run.settings,
            source=self.source,
            specimen=run.report.specimen,
            gpu=run.report.device,
            host=self._host,
            generating=self._generating,
            settled=self._settled,
            validated=self._validated,
            enough=lambda: enough(run) or self._time_to_time(),
            remaining=run.remaining,
        )
        try:
            async for item in generators.find(self.name)(request):
                run.report.specimen = request.specimen or run.report.specimen
                run.mark("candidates")
                if isinstance(item, list):  # schedules of one kernel, which the synthesizer wrote
                    run.tell_faults(item)
                self._queue.put_nowait(item)
        finally:
            run.report.specimen = request.specimen or run.report.specimen
            self._queue.put_nowait(None)

    # what the generator may use

    def _tell(self, message: str) -> None:
        """How far the generator is. While a candidate is validated that stays the stage: what is shown would go to and fro."""
        self.run.progress(self.run.validating or "generating", message, 10)

    def _host(
        self, commands: Any, load: dict[str, Any], idle: float
    ) -> contextlib.AbstractAsyncContextManager[ModelHost]:
        def on_event(event: str, data: Any) -> None:
            if event == "progress":
                self._tell(str(data.get("message", "")))

        run = self.run
        return run.hosts.lend(commands, load, idle, cwd=run.settings.root, on_event=on_event, remaining=run.remaining)

    @contextlib.asynccontextmanager
    async def _generating(self, device: str) -> AsyncIterator[None]:
        if not (self.run.on_gpu and device.startswith("cuda")):
            yield
            return
        async with self.run.gpu.alone():
            self.generating = True
            try:
                yield
            finally:
                self.generating = False

    def _time_to_time(self) -> str:
        """Why a model that generates on the GPU has to stop: what is correct must still be timed there."""
        reserve = max(_TIMING_SECONDS * len(self._untimed), _RESERVE * self.run.settings.seconds)
        over = bool(self._untimed) and self.run.remaining() < reserve
        return "the rest of the time was for timing what is correct" if over else ""

    async def _settled(self) -> None:
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(reached)
        await reached

    def _validated(self, candidate: schema.Candidate) -> tuple[schema.Validated, int] | None:
        index = self._index.get(id(candidate))
        return None if index is None else (self.run.report.candidates[index], index)

    # what becomes of a proposal

    async def _take(self, item: Proposal) -> None:
        if isinstance(item, list):
            await self._take_schedules(item)
            return
        candidate = item.candidate if isinstance(item, schema.Validated) else item
        if not candidate.narrowed:
            self.source.samples += 1
        self._kept.append(candidate)
        if isinstance(item, schema.Validated):
            self._enter(item)
        elif not self._worth_validating(candidate):
            self.source.not_validated += 1
        elif await self._format(candidate):
            tree = syntax_tree(candidate.source)
            if tree in self.seen:
                self.source.equal_to.append(self.seen[tree])
                self._index[id(candidate)] = self.seen[tree]
                return
            index = len(self.run.report.candidates)
            if await self._validate(candidate) is not None:
                self.seen[tree] = self._index[id(candidate)] = index
            else:
                self.source.not_validated += 1

    async def _take_schedules(self, candidates: list[schema.Candidate]) -> None:
        """One kernel in several schedules: on a GPU they are timed together, elsewhere the first correct one will do."""
        if not self.run.on_gpu or len(candidates) == 1:
            for candidate in candidates:
                await self._take(candidate)
            return
        self.source.samples += 1
        self._kept += candidates
        good = [candidate for candidate in candidates if await self._format(candidate)]
        for candidate in good:
            self.seen.setdefault(syntax_tree(candidate.source), len(self.run.report.candidates))
        if not good:
            return
        status = await self._tune(good)
        while status == "wrong":  # another arithmetic may be right; of those, too, what is measured decides
            wrong = good[0].arithmetic
            known = [entry.candidate for entry in self.run.report.candidates if entry.verdict.status == "wrong"]
            good = [one for one in good[1:] if one.arithmetic != wrong and all(one is not other for other in known)]
            good = [one for one in good if self._worth_validating(one)]
            if len(good) < 2:
                for candidate in good:
                    await self._validate(candidate)
                return
            status = await self._tune(good)
        for candidate in good[1:]:  # another schedule may still do
            if status in _OF_THE_SCHEDULE and self._worth_validating(candidate):
                entry = await self._validate(candidate)
                if entry is not None and entry.verdict.status in schema.CORRECT:
                    break

    async def _tune(self, candidates: list[schema.Candidate]) -> str:
        """Have the first validated and all timed; the status of the first."""
        number = len(self.run.report.candidates)
        async with self.run.timing():
            await device_requests.tune(self.run, candidates, lambda fraction: self._percentage(number, fraction))
        first = self.run.report.candidates[number:][:1]
        return first[0].verdict.status if first else "ok"

    def _enter(self, entry: schema.Validated) -> None:
        self._index[id(entry.candidate)] = len(self.run.report.candidates)
        self.run.report.candidates.append(entry)
        self.run.tell_verdict()

    def _worth_validating(self, candidate: schema.Candidate) -> bool:
        """Without a GPU nothing tells which of two correct kernels is faster, so the first correct one is the result."""
        validated = self.run.report.candidates
        if validated and self.run.remaining() < LEAST_SECONDS:
            return False
        if self.run.on_gpu or not validated:
            return True
        if any(entry.verdict.status in schema.CORRECT for entry in validated):
            return False
        if candidate.pinned:
            return True
        # Another schedule computes the same as its sibling: wrong there is wrong here.
        wrong = [entry.candidate for entry in validated if entry.verdict.status == "wrong"]
        return not (candidate.variant and any(sibling.generator == candidate.generator for sibling in wrong))

    async def _format(self, candidate: schema.Candidate) -> bool:
        """Format the candidate in place; one that does not parse is rejected there and then."""
        try:
            candidate.source = await format_source(self.run.completed(candidate.source), self.run.kernel)
            ast.parse(candidate.source)
        except errors.FormatterFailed as error:
            reason = str(error)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # an expression nested too deep, say
            reason = f"Python cannot parse it: {error}"
        else:
            return True
        self._enter(schema.Validated(candidate, schema.Verdict("rejected", reason=reason)))
        return False

    async def _validate(self, candidate: schema.Candidate) -> schema.Validated | None:
        number = len(self.run.report.candidates)
        expected = sum(source.expected or source.samples for source in self.run.report.sources)

        def percentage(fraction: float) -> float:
            return self._percentage(number, fraction)

        of = f" of {expected}" if expected > 1 else ""
        self.run.job.number = number + 1
        self.run.progress("validating", f"Validating candidate {number + 1}{of}", percentage(0.0))
        if self.generating:  # timed later: now the model would slow it down, and be slowed down by it
            validated = await device_requests.validate(self.run, candidate, "none", percentage)
            if validated is not None and validated.verdict.status in schema.CORRECT:
                self._untimed.append(validated)
            return validated
        async with self.run.timing():
            return await device_requests.validate(self.run, candidate, "eager", percentage)

    def _percentage(self, number: int, fraction: float) -> float:
        # How many will come is not known: each takes half of what is left of the bar; without a GPU there is but one.
        done = 1 - 0.5 ** (number + fraction) if self.run.on_gpu else fraction
        return _CANDIDATES_FROM + done * (_CANDIDATES_TO - _CANDIDATES_FROM)

    async def _time_untimed(self) -> None:
        while self._untimed:
            entry = self._untimed.pop(0)
            if self.run.remaining() < LEAST_SECONDS:
                entry.measurement = entry.measurement or schema.Measurement(missing="the time was over")
                continue
            self.run.progress("measuring", f"Timing a candidate of {self.name}", _CANDIDATES_TO)
            async with self.run.timing():
                await device_requests.validate(self.run, entry.candidate, "eager", lambda _: _CANDIDATES_TO, entry)


def syntax_tree(source: str) -> str:
    """What two sources have in common that differ only in layout, comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and body and _is_docstring(body[0]):
            body.pop(0)
    try:
        return ast.dump(tree)
    except RecursionError:  # an expression of a thousand terms
        return source


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def enough(run: Run) -> str:
    """Why no more candidates are wanted, as a clause; "" if they are."""
    best = fastest(run.report.candidates)
    if run.remaining() < (LEAST_SECONDS if run.report.candidates else 0.0):
        return TIME_OVER
    if not run.on_gpu:
        return "a kernel is correct, and there is no GPU to tell a faster one" if best is not None else ""
    if best is None:
        return ""
    measurement = run.report.candidates[best].measurement
    shapes = measurement.shapes if measurement is not None else []
    if shapes and all((shape.roofline_share or 0.0) >= _NEAR_ROOFLINE for shape in shapes):
        return "a kernel is within 5 % of the roofline"
    return ""
