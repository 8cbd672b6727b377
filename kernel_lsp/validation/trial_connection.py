"""How the referee reaches the trial: what is sent there, what comes back, and what it means where nothing does."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kernel_lsp.validation import answers, channel, failures


@dataclass
class TrialConnection:
    """The trial's channel, the candidate's file, how it ended, how to end it."""

    channel: channel.Channel
    source: str  # path of the candidate's file
    reap: Callable[[], str]  # waits for its end; in words
    kill: Callable[[], None]
    deadline: float  # of time.monotonic()
    limits: list[str] = field(default_factory=list)  # what it may do that no layer of confinement keeps it from
    waits: bool = False  # it starts CUDA only when it is asked for something
    stopped: bool = False  # by the referee, when the time was over
    owed: list[str] = field(default_factory=list)  # what the trial was asked to do, and was not yet heard about

    def text(self) -> str:
        """The text of the candidate's file."""
        with open(self.source, encoding="utf-8") as file:
            return file.read()

    def start(self) -> None:
        """Let the trial start CUDA, before which it waits for the first byte: the GPU may be another's until now."""
        if not self.waits:
            with contextlib.suppress(OSError):  # it has ended, which shows when it is asked for something
                self.channel.socket.send(b"\0")  # a byte without a file is no message

    def send(self, message: dict[str, Any], tree: Any = None, file: int | None = None) -> None:
        """Hand ``message`` and a tree of tensors to the trial.

        Raises:
            Failure: the trial has ended.
        """
        try:
            self.channel.send(message, tree, file)
        except channel.Closed:
            raise self._death() from None

    def receive(self, verb: str, room: int) -> tuple[dict[str, Any], Any, list[dict[str, Any]]]:
        """What the trial says, looked through; ``room``: bytes of tensors that may come with it.

        Raises:
            Failure: the candidate's own, or what the trial's death, its silence or the form of its answer means.
        """
        try:
            answer, tree, metas = self.channel.receive(max(0.0, self.deadline - time.monotonic()), room)
            if self.channel.file is not None:
                os.close(self.channel.file)
            if "failed" in answer:
                raise answers.failure(answer["failed"])
            return answers.checked(verb, answer), tree, metas
        except channel.TooLate:
            self.kill()
            self.reap()
            self.stopped = True
            raise failures.Failure("timeout", "it gave no answer in the time allowed, and was stopped") from None
        except channel.Closed:
            raise self._death() from None
        except ValueError as error:
            raise malformed(error) from None

    def _death(self) -> failures.Failure:
        how = self.reap()
        if self.stopped:
            return failures.Failure("timeout", "it was stopped before, since the time was over")
        if "memory" in how:
            return failures.Failure("out-of-memory", f"its process was {how}")
        meaning = ": memory that is not its own was touched" if "SIGSEGV" in how or "SIGBUS" in how else ""
        return failures.Failure(
            "crashed", f"its process ended: {how}" if how.startswith("exit") else f"its process was {how}{meaning}"
        )


def malformed(error: Exception) -> failures.Failure:
    """What an answer means that is not of the form it should have."""
    return failures.Failure("cheating", f"it sent a malformed answer: {answers.cleaned(str(error), 120)}")
