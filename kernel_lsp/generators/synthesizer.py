"""Candidates written by rule from the exported graph, on the worker side (``kernel_lsp.synthesis``)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from kernel_lsp import class_schema, schema
from kernel_lsp.generators import Request
from kernel_lsp.settings import Settings


def missing(settings: Settings) -> str:
    """It runs wherever the worker does."""
    return ""


async def generate(request: Request) -> AsyncIterator[list[schema.Candidate]]:
    """The synthesizer's kernel for the class in all its schedules, the likeliest to be fast first.

    Raises:
        UserError: what the worker met on the way: no inputs, an import that fails, nothing to lower, …
    """
    request.progress("Writing a kernel by rule")
    answer = await request.ask_worker("synthesize", "exporting the graph and writing the kernel")
    request.specimen = schema.from_json(class_schema.Specimen, answer["specimen"])
    candidates = [schema.from_json(schema.Candidate, data) for data in answer["candidates"][: request.samples]]
    request.source.expected = 1
    yield candidates
