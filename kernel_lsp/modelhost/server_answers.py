"""What OpenAI-compatible servers take and say: the body of a request, and their ways to refuse one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from kernel_lsp.modelhost import limits

#: parameters that some servers or models refuse, and what takes their place
REPLACEMENTS: dict[str, str | None] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "seed": None,
    "stream_options": None,
    "top_p": None,
    "temperature": None,
}
#: beyond OpenAI's interface, where it is taken: servers' own defaults (top-k 40, a penalty of 1.1) would bend the distribution
EXTRAS: dict[str, float] = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "repetition_penalty": 1.0}
#: a server's words are cut here in messages
LONGEST = 300


class Half(Exception):
    """Something came that is no whole answer."""


@dataclass
class Parameters:
    """What this server was found to take. ``most``: the longest answer it has room for, once it complained."""

    refused: set[str] = field(default_factory=set)
    most: int | None = None

    def body(self, model: str, params: dict[str, Any], seed: int, stream: bool = True) -> dict[str, Any]:
        """The arguments of the client's ``create`` for one sample."""
        wanted = int(params.get("max_tokens") or 2048)
        body: dict[str, Any] = {
            "model": model,
            "stream": True,
            "temperature": float(params.get("temperature") or 0.0),
            "top_p": float(params.get("top_p") or 1.0),
            "max_tokens": wanted if self.most is None else min(wanted, self.most),
            "seed": seed,
            "stream_options": {"include_usage": True},
        }
        if not stream:
            body.update(stream=False, max_tokens=1)
            del body["stream_options"]
        if not self.refused.intersection(EXTRAS):
            body["extra_body"] = dict(EXTRAS)
        if params.get("messages") is not None:
            body["messages"] = params["messages"]
        else:  # servers add the begin-of-text themselves
            body["prompt"] = limits.without_beginning(params["prompt"])
        for name in sorted(self.refused - EXTRAS.keys()):
            value, other = body.pop(name, None), REPLACEMENTS[name]
            if other is not None and other not in self.refused and value is not None:
                # The client's function for completions knows no max_completion_tokens.
                place = (
                    body
                    if "messages" in body or other != "max_completion_tokens"
                    else body.setdefault("extra_body", {})
                )
                place[other] = value
        return body

    def refuse(self, name: str) -> bool:
        """Leave a parameter out from now on; False if it is already left out."""
        if name in self.refused:
            return False
        self.refused.add(name)
        return True


def said(choice: Any) -> str:
    """The text that a chunk of a stream adds: of a completion, or of a chat message."""
    text = getattr(choice, "text", None)
    if text is None:
        text = getattr(getattr(choice, "delta", None), "content", None)
    return text if isinstance(text, str) else ""


def words_of(error: BaseException) -> str:
    """What an error says, on one line, shortened: the server's own message where its body has one."""
    body = getattr(error, "body", None)
    text = ""
    if isinstance(body, dict):
        inner = body.get("error", body)
        text = inner.get("message", "") if isinstance(inner, dict) else inner if isinstance(inner, str) else ""
        text = text or (json.dumps(body["detail"]) if "detail" in body else "")
    text = " ".join(str(text or getattr(error, "message", "") or error).split())
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def refused_parameter(words: str, body: dict[str, Any]) -> str | None:
    """The parameter of ours that a refusal is about; one of ``EXTRAS`` where it names none, since those are the odd ones."""
    extras = body.get("extra_body") or {}
    named = [name for name in [*REPLACEMENTS, *extras] if re.search(rf"\b{name}\b", words)]
    return next((name for name in named if name in body or name in extras), next(iter(extras), None))


@dataclass
class ContextError:
    """A prompt of so many tokens is too long for a context of so many."""

    prompt: int
    context: int


def context_error(words: str) -> ContextError | None:
    """The numbers in a complaint about the context's length (OpenAI, vLLM, llama.cpp and its Python server), or None."""
    context = re.search(
        r"(?:maximum context length is|context window of|available context size \(?)\D{0,3}(\d+)", words, re.IGNORECASE
    )
    if not context:
        return None
    length = int(context.group(1))
    for pattern in (
        r"\((\d+) in (?:the|your)",
        r"(?:has|contains at least|contains) (\d+) input tokens",
        r"request \((\d+) tokens",
    ):
        prompt = re.search(pattern, words)
        if prompt:
            return ContextError(int(prompt.group(1)), length)
    total = re.search(r"(?:requested|resulted in|Requested tokens) \(?(\d+)", words)
    return ContextError(int(total.group(1)) if total else length, length)
