"""One quiet hint a session that a language model could help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_lsp.errors import ArgumentChanged, AttributeAssigned, NotExportable, NothingToLower, NotWritable

from ..text.one_line import no_model_words
from .state import State

if TYPE_CHECKING:
    from kernel_lsp.jobs import Job

RECALL, SYNTHESIZER = "recall", "synthesizer"


def note(state: State, job: Job) -> None:
    """Keep or drop the hint at language models after a job.

    The first generation in a session that went without a language model carries it, until the next job is over.
    """
    state.model_hint = None
    sources = job.report.sources if job.report is not None else []
    could_help = _could_help(job)
    asked = [source.generator for source in sources if source.generator != RECALL]
    alone = job.kind == "generate" and asked == [SYNTHESIZER] and could_help
    if alone and not state.model_hinted and not state.settings_for(job.path).generators:
        state.model_hinted, state.model_hint = True, (job.path, job.target.class_name)
        state.connection.log_message(no_model_words(), "info")


def _could_help(job: Job) -> bool:
    """Whether a model's candidates would have been asked for: without a GPU they are not once a kernel is correct."""
    if isinstance(job.error, (NothingToLower, NotExportable, ArgumentChanged, AttributeAssigned, NotWritable)):
        return True
    report = job.report
    on_gpu = report is not None and report.device is not None and report.device.kind == "cuda"
    return job.state == "done" and report is not None and (on_gpu or report.chosen is None)
