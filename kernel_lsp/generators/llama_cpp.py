"""A GGUF file, KernelLLM's or another's, through a model host with llama-cpp-python."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

from kernel_lsp.generators import Request, kernelllm
from kernel_lsp.generators.kernelllm import template_for
from kernel_lsp.generators.search import Model, Proposal, search
from kernel_lsp.hub import cache
from kernel_lsp.settings import Settings

NAME = "llama-cpp"
_DEFAULT = "kernelllm-gguf"
_BATCH = 3  # they come one after the other anyway; between batches what is correct is timed, and perhaps good enough


def missing(settings: Settings) -> str:
    """Why it cannot run here: no GGUF file."""
    if settings.worker_prefix and not settings.llama_cpp.interpreter:
        return f"whether the machine behind kernelLsp.workerPrefix has a model is not known; name {NAME} in kernelLsp.generators"
    if not settings.llama_cpp.model and not kernelllm.missing(settings):
        return "the generator kernelllm has the same model, whole"
    if file(settings) is None:
        wanted = settings.llama_cpp.model or "GGUF file"
        return f"no {wanted} here; kernel-lsp models pull {_DEFAULT} gets one"
    return ""


def file(settings: Settings) -> Path | None:
    """The GGUF file; None where there is none."""
    name = settings.llama_cpp.model
    given = (settings.root or Path.cwd()) / os.path.expanduser(name)
    if name and given.is_file():
        return given.absolute()
    found = cache.find(name or _DEFAULT)
    return found if found is not None and found.is_file() else None


async def generate(request: Request) -> AsyncIterator[Proposal]:
    """Candidates from the model.

    Raises:
        UserError: what ``search`` raises.
    """
    options = request.settings.llama_cpp
    found = file(request.settings)
    load = {
        "backend": "llama-cpp",
        "model": str(found or options.model or _DEFAULT),
        "gpu_layers": options.gpu_layers,
        "context": options.context,
        "threads": options.threads,
    }
    model = Model(
        NAME,
        request.settings.model_commands(options.interpreter),
        load,
        options.idle_seconds,
        options.mode,
        lambda name: template_for(name, found.parent if found else None, request.settings),
        _BATCH,
    )
    async for proposal in search(request, model):
        yield proposal
