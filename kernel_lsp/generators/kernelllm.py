"""KernelLLM, or any model in the Transformers format, through a model host with transformers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

from kernel_lsp.generators import Request, prompt
from kernel_lsp.generators.search import Model, Proposal, search
from kernel_lsp.hub import cache
from kernel_lsp.settings import Settings

NAME = "kernelllm"


def missing(settings: Settings) -> str:
    """Why it cannot run here: the model was not fetched."""
    if settings.worker_prefix and not settings.kernelllm.interpreter:
        return f"whether the machine behind kernelLsp.workerPrefix has a model is not known; name {NAME} in kernelLsp.generators"
    if folder(settings) is None:
        return f"no model {settings.kernelllm.model} here; kernel-lsp models pull kernelllm gets it"
    return ""


def folder(settings: Settings) -> Path | None:
    """The folder of the model's files; None where it was not fetched."""
    name = settings.kernelllm.model
    given = (settings.root or Path.cwd()) / os.path.expanduser(name)
    if (given / "config.json").is_file():
        return given.absolute()
    found = cache.find(name)
    return found if found is not None and found.is_dir() else None


async def generate(request: Request) -> AsyncIterator[Proposal]:
    """Candidates from the model.

    Raises:
        UserError: what ``search`` raises.
    """
    options = request.settings.kernelllm
    files = folder(request.settings)
    load = {
        "backend": "transformers",
        "model": str(files or options.model),
        "device": options.device,
        "dtype": options.dtype,
        "memory": int(options.memory * 1e9) or None,
        "context": options.context,
    }
    model = Model(
        NAME,
        request.settings.model_commands(options.interpreter),
        load,
        options.idle_seconds,
        options.mode,
        lambda name: template(files),
        options.batch,
    )
    async for proposal in search(request, model):
        yield proposal


def template(files: Path | None) -> str | None:
    """The prompt template that lies beside the weights, read as data; None where there is none."""
    try:
        return prompt.read_template((files / "kernelllm.py").read_text("utf-8")) if files else None
    except (OSError, UnicodeDecodeError):
        return None


def template_for(name: str, files: Path | None, settings: Settings) -> str | None:
    """The template beside ``files``; else, for a KernelLLM in another form, that of the one that was fetched."""
    found = template(files)
    return found or (template(folder(settings)) if "kernelllm" in name.lower() else None)
