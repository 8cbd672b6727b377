"""Any OpenAI-compatible server, through a model host with the openai client."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from kernel_lsp.errors import ModelServerNotNamed
from kernel_lsp.generators import Request
from kernel_lsp.generators.kernelllm import template_for
from kernel_lsp.generators.search import Model, Proposal, search
from kernel_lsp.settings import Settings

NAME = "openai"
_HOSTED = "https://api.openai.com/v1"
_IDLE_SECONDS = 60.0  # the process holds no model, only a client


def missing(settings: Settings) -> str:
    """Why it cannot run here. A key in the environment alone is no leave to send code anywhere."""
    options = settings.openai
    if options.base_url or (options.model and os.environ.get(options.api_key_env)):
        return ""
    if options.model:
        return f"{options.model} needs a server (kernelLsp.openai.baseUrl), or a key in ${options.api_key_env}"
    return "no server is named (kernelLsp.openai.baseUrl)"


async def generate(request: Request) -> AsyncIterator[Proposal]:
    """Candidates from the server's model.

    Raises:
        ModelServerNotNamed: the settings name no server.
        UserError: what ``search`` raises.
    """
    options = request.settings.openai
    if not options.base_url and not options.model:  # code goes only to a server that the user named
        raise ModelServerNotNamed()
    load = {
        "backend": "openai",
        "base_url": options.base_url or _HOSTED,
        "model": options.model,
        "api_key_env": options.api_key_env,
        "timeout": options.timeout,
        "retries": options.retries,
        "parallel": options.parallel,
        "context": options.context,
    }
    # A server on this machine may well share the GPU that candidates are timed on.
    device = "cuda" if on_loopback(options.base_url) else "remote"

    def template(name: str) -> str | None:
        return template_for(name, None, request.settings)

    model = Model(NAME, [[sys.executable]], load, _IDLE_SECONDS, options.mode, template, device=device)
    async for proposal in search(request, model):
        yield proposal


def on_loopback(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
