"""The search with a language model: samples, narrower variants, repair rounds; common to every backend.

Nothing here knows how a model is run: a model host answers (docs/architecture.md), the pipeline validates.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel_lsp import class_schema, knowledge, schema, speedup
from kernel_lsp.class_schema import Subject
from kernel_lsp.errors import Cancelled, ModelHostTimedOut, PromptTooLong, UserError
from kernel_lsp.errors.surface import LOG
from kernel_lsp.generators import Host, Request, answers, assembly, prompt, verified
from kernel_lsp.schema import NARROWED, Candidate, Validated

log = logging.getLogger("kernel_lsp.generators")

Messages = list[dict[str, str]]
Proposal = Candidate | Validated

_WIDTH = 4  # conversations that go on in one round of repair
_LOOK_SECONDS = 0.5  # how often a generation that runs is asked whether it is still wanted


@dataclass
class Model:
    """How a generator reaches its model.

    Attributes:
        generator: the generator's name.
        commands: interpreters to try for the host, the best first.
        load: the parameters of the host's "load".
        mode: "completion" for one prompt, "chat" for messages; "auto" decides by the model's name once it is loaded.
        template: from the model's name, once it is loaded, to the prompt template that it was trained with, or None.
        batch: samples at once, 0 for all.
        device: where it generates, if that is known better than the host knows it.
    """

    generator: str
    commands: Sequence[Sequence[str]]
    load: dict[str, Any]
    idle_seconds: float = 600.0
    mode: str = "completion"
    template: Callable[[str], str | None] = lambda name: None
    batch: int = 0
    device: str = ""


@dataclass(eq=False)
class Sample:
    """One answer with what became of it. ``messages`` led to it; empty for a completion."""

    candidate: Candidate
    code: answers.Code | None = None
    rejected: Validated | None = None  # where the answer cannot be used
    messages: Messages = field(default_factory=list)


@dataclass
class Search:
    """What stays the same during one search."""

    request: Request
    model: Model
    subject: Subject
    host: Host
    drawn: int = 0  # samples asked for so far: the next one's seed counts from here

    @property
    def chat(self) -> bool:
        """Whether the model converses, or completes a prompt as KernelLLM does."""
        if self.model.mode == "auto":
            return "kernelllm" not in str(self.host.loaded.get("name", "")).lower()
        return self.model.mode == "chat"


async def search(request: Request, model: Model) -> AsyncIterator[Proposal]:
    """Candidates from a language model.

    Raises:
        UserError: the class cannot be sliced, the model cannot be loaded or reached, the prompt is too long, …; not
            where it has proposed something before: then ``request.source.problem`` says it.
    """
    assert request.host is not None and request.settled is not None
    request.progress(f"Writing the prompt for {request.class_name}")
    sliced = await request.ask_worker("slice", "slicing the class for the prompt")
    request.specimen = schema.from_json(class_schema.Specimen, sliced["specimen"])
    subject: Subject = schema.from_json(Subject, sliced["subject"])
    source = request.source
    request.progress(f"Loading {model.load.get('model') or 'the model'}")
    began = time.monotonic()
    async with request.host(model.commands, model.load, model.idle_seconds) as host:
        source.seconds["load"] = round(time.monotonic() - began, 3)
        source.model = str(host.loaded.get("name") or model.load.get("model") or "")
        source.device = model.device or str(host.loaded.get("device") or "")
        run = Search(request, model, subject, host)
        proposed = False
        try:
            async for proposal in _proposals(run):
                proposed = True
                yield proposal
        except UserError as error:
            if not proposed:
                raise
            source.problem = str(error)
        if not proposed and not source.problem:
            source.problem = f"stopped before the first answer, because {request.enough() or 'nothing came'}"


async def _proposals(run: Search) -> AsyncIterator[Proposal]:
    request, settled = run.request, run.request.settled
    assert settled is not None
    # At temperature 0 every sample is the same.
    wanted = request.samples if request.settings.temperature > 0 else 1
    request.source.expected = wanted
    examples = await verified.examples(request, request.source.device == "remote") if run.chat else []
    template = None if run.chat else run.model.template(str(run.host.loaded.get("name") or ""))
    asked = _asked(run, template, examples)
    samples: list[Sample] = []
    while run.drawn < wanted and not request.enough():
        count = min(run.model.batch or wanted, wanted - run.drawn)
        batch: list[Sample] = []
        drawn = run.drawn
        try:
            async for sample in _draw(run, asked, count, None):
                batch.append(sample)
                yield sample.rejected or sample.candidate
        except PromptTooLong:
            if not examples or batch:
                raise
            examples, run.drawn = [], drawn  # better without them than not at all
            asked = _asked(run, template, examples)
            continue
        await settled()
        for narrow in _narrower(run, batch):
            yield narrow
        samples += batch
    if run.chat:
        async for proposal in _repair(run, samples):
            yield proposal


def _asked(run: Search, template: str | None, examples: Sequence[str]) -> dict[str, Any]:
    """The prompt, as a host takes it."""
    settings = run.request.settings
    wishes = settings.bounds == "check", settings.precision
    if run.chat:
        return {"messages": prompt.chat(run.subject, _notes(run.request), examples, *wishes)}
    return {"prompt": prompt.completion(run.subject.source, template, *wishes)}


def _notes(request: Request) -> list[str]:
    ops = request.specimen.ops if request.specimen is not None else {}
    return [note.text for note in knowledge.chosen(ops, request.gpu)]


async def _repair(run: Search, samples: list[Sample]) -> AsyncIterator[Proposal]:
    """Rounds in which the model is told what became of its candidate, and answers again."""
    request, settled = run.request, run.request.settled
    assert settled is not None and request.specimen is not None
    for number in range(1, request.settings.rounds + 1):
        if request.enough():
            return
        chosen = _worth_repairing(run, samples)
        if not chosen:
            return
        request.source.rounds = number
        samples = []
        for sample, validated, index in chosen:
            if request.enough():
                break
            words = prompt.repair(validated, request.specimen)
            messages = [
                *sample.messages,
                {"role": "assistant", "content": sample.candidate.answer},
                {"role": "user", "content": words},
            ]
            try:
                async for repaired in _draw(run, {"messages": messages}, 1, index):
                    samples.append(repaired)
                    yield repaired.rejected or repaired.candidate
            except PromptTooLong:
                continue  # this conversation has filled the context; others may go on
        await settled()
        for narrow in _narrower(run, samples):
            yield narrow


def _worth_repairing(run: Search, samples: list[Sample]) -> list[tuple[Sample, Validated, int]]:
    """The conversations to go on with: the fastest correct candidate first, then those that came closest."""
    near = ["ok", "slower", "wrong", "compile-error", "crashed", "timeout", "out-of-memory", "not-drop-in"]
    found = []
    for sample in samples:
        known = run.request.validated(sample.candidate)
        if known is not None and known[0].candidate is sample.candidate:
            found.append((sample, *known))
    correct = [entry for entry in found if entry[1].verdict.status in schema.CORRECT]
    wrong = [entry for entry in found if entry[1].verdict.status not in schema.CORRECT]
    wrong.sort(key=lambda entry: near.index(entry[1].verdict.status) if entry[1].verdict.status in near else len(near))
    correct.sort(key=lambda entry: _kernel_time_over_shapes(entry[1]))
    return [*correct[:1], *wrong][:_WIDTH]


def _kernel_time_over_shapes(validated: Validated) -> float:
    """In microseconds: over the recorded shapes, weighted by calls, else the sum over all shapes; infinite where none was timed."""
    if (mix := speedup.mixed(validated.measurement)) is not None:
        return mix[1].median
    shapes = validated.measurement.shapes if validated.measurement else []
    return sum(shape.kernel.median for shape in shapes if shape.kernel) or float("inf")


def _narrower(run: Search, samples: list[Sample]) -> list[Candidate]:
    """For candidates that are right at the example's sizes but not at others: the same, for those sizes only."""
    if not run.subject.exact:
        return []
    found = []
    for sample in samples:
        known = run.request.validated(sample.candidate)
        if known is None or sample.code is None or known[0].candidate is not sample.candidate:
            continue
        validated, index = known
        checks = validated.verdict.checks
        if validated.verdict.status not in ("wrong", "crashed", "timeout", "compile-error"):
            continue
        # The interpreter cuts large examples down: there this says no, and the candidate waits for a GPU.
        if not any(check.name == schema.EXAMPLE and check.passed for check in checks):
            continue
        with contextlib.suppress(answers.Unusable):
            candidate = _candidate(
                run, sample.candidate.answer, sample.candidate.seed or 0, sample.candidate.prompt_hash
            )
            candidate.source = assembly.assemble(sample.code, run.subject, exact=True, generator=run.model.generator)
            candidate.parent, candidate.variant = index, NARROWED
            candidate.pinned = candidate.narrowed = True
            found.append(candidate)
    return found


async def _draw(run: Search, asked: dict[str, Any], count: int, parent: int | None) -> AsyncIterator[Sample]:
    """``count`` answers to one prompt, each as soon as it is complete. Ends early when no more is wanted.

    Raises:
        UserError: of the host; ModelHostTimedOut only if no answer was complete.
    """
    request, source = run.request, run.request.source
    assert request.generating is not None
    settings = request.settings
    params = asked | {
        "samples": count,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens,
        "seed": settings.seed + run.drawn,
    }
    run.drawn += count
    hashed = "sha256:" + hashlib.sha256(json.dumps(asked, ensure_ascii=False).encode()).hexdigest()
    complete: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def on_event(event: str, data: Any) -> None:
        if event == "answer":
            complete.put_nowait(data)
        elif event == "progress":
            rate = data.get("tokens_per_second")
            source.tokens_per_second = rate if rate is not None else source.tokens_per_second
            request.progress(_words(source.model, data))

    began = time.monotonic()
    got = 0
    async with request.generating(source.device):
        task = asyncio.ensure_future(run.host.ask("generate", params, on_event, max(request.remaining(), 1.0)))
        task.add_done_callback(lambda _: complete.put_nowait(None))
        try:
            while True:
                try:
                    async with asyncio.timeout(_LOOK_SECONDS):
                        answer = await complete.get()
                except TimeoutError:
                    if request.enough():
                        break
                    continue
                if answer is None:
                    break
                got += 1
                source.tokens += int(answer.get("tokens") or 0)
                yield _sample(run, answer, asked, hashed, parent)
                if request.enough():
                    break
        finally:
            if not task.done():
                task.cancel()
            await asyncio.wait({task})
            source.seconds["generate"] = round(source.seconds.get("generate", 0.0) + time.monotonic() - began, 3)
    try:
        done = task.result()
        source.prompt_tokens = done.get("prompt_tokens") or source.prompt_tokens
        source.tokens_per_second = done.get("tokens_per_second") or source.tokens_per_second
    except (asyncio.CancelledError, Cancelled):
        pass
    except ModelHostTimedOut:
        if not got and not source.samples:
            raise


def _words(model: str, data: dict[str, Any]) -> str:
    """One line, such as ``KernelLLM: 3 of 10 answers, 4120 tokens, 610 tokens/s``."""
    words = f"{model.rpartition('/')[2] or 'model'}: {data.get('finished', 0)} of {data.get('samples', 1)} answers"
    words += f", {data.get('tokens', 0)} tokens"
    rate = data.get("tokens_per_second")
    return words + (f", {rate:.0f} tokens/s" if rate else "")


def _sample(run: Search, answer: dict[str, Any], asked: dict[str, Any], hashed: str, parent: int | None) -> Sample:
    """An answer, read and assembled into a drop-in file, or rejected with the reason and the line in the answer."""
    candidate = _candidate(run, str(answer["text"]), int(answer.get("seed") or 0), hashed)
    candidate.parent = parent
    sample = Sample(candidate, messages=list(asked.get("messages", [])))
    try:
        sample.code = answers.extract(candidate.answer, str(answer.get("finish") or "stop"))
        candidate.source = assembly.assemble(sample.code, run.subject, exact=False, generator=run.model.generator)
    except answers.Unusable as unusable:
        sample.rejected = Validated(candidate, schema.Verdict("rejected", unusable.reason, unusable.line))
    except Exception as error:  # whatever a model writes, it must not end the job
        log.exception("an answer of %s", run.request.source.model)
        reason = f"kernel-lsp could not read the answer ({type(error).__name__}: {error}); please report it with {LOG}"
        sample.rejected = Validated(candidate, schema.Verdict("rejected", reason))
    return sample


def _candidate(run: Search, answer: str, seed: int, hashed: str | None) -> Candidate:
    return Candidate(
        source="",
        generator=run.model.generator,
        note=f"{run.request.source.model}, seed {seed}",
        prompt_hash=hashed,
        answer=answer,
        seed=seed,
        # Without an exported graph nothing tells which dimensions may vary: the envelope holds them all.
        pinned=run.request.specimen is not None and not run.request.specimen.ops,
        precision=run.request.settings.precision,
    )
