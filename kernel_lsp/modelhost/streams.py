"""What a generation tells while it runs: text as it comes, answers as they are complete, progress ten times a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kernel_lsp.modelhost.request import Request

#: seconds between two reports
INTERVAL = 0.1


class Streams:
    """The events of one ``generate`` request: ``samples`` texts that grow side by side."""

    def __init__(self, request: Request, samples: int, seed: int) -> None:
        self.request = request
        self.samples = samples
        self.seed = seed
        self.began = time.monotonic()
        self.reported = self.began
        self.first_token: float | None = None  # seconds from the request to the first token
        self.counts = [0] * samples
        self.finished = 0
        self.pending: dict[int, list[str]] = {}

    def text(self, sample: int, delta: str, tokens: int) -> None:
        """``tokens`` more tokens of a sample, which add ``delta`` to its text (perhaps nothing yet)."""
        self.counts[sample] += tokens
        if self.first_token is None and tokens:
            self.first_token = round(time.monotonic() - self.began, 4)
        if delta:
            self.pending.setdefault(sample, []).append(delta)
        if time.monotonic() - self.reported >= INTERVAL:
            self.report()

    def answer(self, sample: int, text: str, finish: str) -> None:
        """A sample is complete; what is left of its text goes out before it."""
        self._flush(sample)
        self.finished += 1
        data = {"sample": sample, "text": text, "tokens": self.counts[sample], "finish": finish}
        self.request.emit("answer", {**data, "seed": self.seed + sample})

    def restart(self, sample: int) -> None:
        """A sample begins again, if an attempt broke off: what it said so far does not count."""
        self.pending.pop(sample, None)
        if self.counts[sample]:
            self.counts[sample] = 0
            self.request.emit("text", {"sample": sample, "text": "", "restart": True})

    def report(self) -> None:
        """Send what each sample has grown by, and the rate."""
        self.reported = time.monotonic()
        for sample in sorted(self.pending):
            self._flush(sample)
        self.request.emit("progress", {**self._rate(), "finished": self.finished, "samples": self.samples})

    def _flush(self, sample: int) -> None:
        deltas = self.pending.pop(sample, None)
        if deltas:
            self.request.emit("text", {"sample": sample, "text": "".join(deltas)})

    def _rate(self) -> dict[str, Any]:
        tokens, seconds = sum(self.counts), max(time.monotonic() - self.began, 1e-9)
        return {"tokens": tokens, "tokens_per_second": round(tokens / seconds, 2)}

    def result(self, prompt_tokens: int | None) -> dict[str, Any]:
        """The answer to the request."""
        self.report()
        seconds = round(time.monotonic() - self.began, 4)
        return {"prompt_tokens": prompt_tokens, **self._rate(), "seconds": seconds, "first_token": self.first_token}


class Detokenizer:
    """Token ids to text, a few at a time, never half a character.

    A tokenizer's ``decode`` need not be additive (a first word may lose its space), so each step decodes from a little
    before what is new and takes what was added.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self.decode = decode
        self.ids: list[int] = []
        self.start = 0  # where decoding begins
        self.read = 0  # up to here the text is out
        self.out: list[str] = []

    def add(self, ids: list[int]) -> str:
        """The text that these ids complete; "" while they are only part of a character."""
        self.ids += ids
        before = self.decode(self.ids[self.start : self.read])
        after = self.decode(self.ids[self.start :])
        if after.endswith("\ufffd") or len(after) <= len(before):
            return ""
        self.start, self.read = self.read, len(self.ids)
        self.out.append(after[len(before) :])
        return self.out[-1]

    def end(self) -> str:
        """What is still held back, for a text that ends within a character."""
        before = self.decode(self.ids[self.start : self.read])
        after = self.decode(self.ids[self.start :])
        self.start = self.read = len(self.ids)
        self.out.append(after[len(before) :])
        return self.out[-1]

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self.out)
