"""The results of each source of candidates: as counts, and in words."""

from __future__ import annotations

from kernel_lsp import schema
from kernel_lsp.speedup import speedups


def speedup(validated: schema.Validated) -> float | None:
    """Times eager, as in the headline; None where that was not measured."""
    return speedups(validated.measurement)[0]


def count(report: schema.Report) -> None:
    """Fill in how many samples of each source are correct, repetitions included, and the best speedup."""
    for source in report.sources:
        own = [entry for entry in report.candidates if entry.candidate.generator == source.generator]
        own += [report.candidates[i] for i in source.equal_to]
        correct = [entry for entry in own if entry.verdict.status in schema.CORRECT]
        source.correct = len(correct)
        source.best = max(filter(None, map(speedup, correct)), default=None)


def words(report: schema.Report) -> list[str]:
    """One text a source: ``kernelllm: 10 samples, 3 correct, best 1.40×``, ``synthesizer: 1.90×, chosen``."""
    chosen = report.candidates[report.chosen].candidate.generator if report.chosen is not None else None
    return [_one(source, source.generator == chosen, report) for source in report.sources]


def _one(source: schema.Source, chosen: bool, report: schema.Report) -> str:
    parts = []
    if source.samples > 1:
        parts.append(f"{source.samples} samples, {source.correct} correct")
        if source.not_validated:
            parts.append(f"{source.not_validated} not validated")
        if source.best is not None:
            parts.append(f"best {source.best:.2f}×")
    elif source.samples == 1:
        own = [entry for entry in report.candidates if entry.candidate.generator == source.generator]
        verdict = own[0].verdict.status if own else "not validated"
        parts.append(f"{source.best:.2f}×" if source.best is not None else "correct" if source.correct else verdict)
    if chosen:
        parts.append("chosen")
    if source.problem:
        parts.append(source.problem.rstrip("."))
    return f"{source.generator}: {', '.join(parts) or 'nothing'}"
