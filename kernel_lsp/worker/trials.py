"""Forking a trial: the process that a candidate runs in."""

from __future__ import annotations

import os
import select
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

import torch

from kernel_lsp import child_processes
from kernel_lsp.confinement import descriptors, entering, layers
from kernel_lsp.naming import kernel_class
from kernel_lsp.specimen import examples, importing
from kernel_lsp.validation import channel
from kernel_lsp.validation.trial import Trial
from kernel_lsp.validation.trial_connection import TrialConnection
from kernel_lsp.validation.trial_messages import serve
from kernel_lsp.worker import candidate_process, exit_reasons, memory_quota


def fork(
    given: dict[str, Any], folder: str, source: str, others: Sequence[TrialConnection] = (), waits: bool = False
) -> TrialConnection:
    """Start a trial in a process of its own; it keeps one end of a socket and nothing else of this process.

    ``folder`` is where it may write; ``others`` are the trials that were forked before. With ``waits`` it touches the
    GPU only when it is asked for something, else when ``TrialConnection.start`` allows it.
    """
    found = layers.from_json(given.get("layers"))
    os.makedirs(folder, exist_ok=True)
    mine, theirs = channel.pair()
    before = exit_reasons.for_want_of_memory()
    pid = child_processes.fork()
    if pid == 0:
        mine.close()
        for other in others:
            other.channel.socket.close()
        try:
            descriptors.keep_only(theirs.fileno())  # the verdict is not the trial's to send
            if waits:
                select.select([theirs], [], [])
            _run(given, folder, channel.Channel(theirs), found)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    theirs.close()
    ended: list[str] = []

    def reap() -> str:
        if not ended:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            child_processes.kill_group(pid)  # what it started; the number is still its own
            _, status = os.waitpid(pid, 0)
            ended.append(exit_reasons.describe(status, pid, given["scratch"], before))
        return ended[0]

    def kill() -> None:
        if not ended:
            child_processes.kill_group(pid)
            reap()

    limits = layers.limits(found, gpu=given["device"] != "interpreter") + _of_sharing(given)
    return TrialConnection(
        channel.Channel(mine), source, reap, kill, time.monotonic() + given["seconds"], limits, waits
    )


def sources_of(given: dict[str, Any]) -> str:
    """The folder of the candidates' files, which no candidate may write in."""
    return os.path.join(given["scratch"], "sources")


def _of_sharing(given: dict[str, Any]) -> list[str]:
    needed = given.get("sharing") or entering.SHARING[0]
    if given["device"] == "interpreter" or needed == entering.SHARING[0]:
        return []
    if needed == "everything":
        return ["the kernel was not confined while it was validated: the GPU's driver does not start behind it"]
    return [
        f"while it was validated the kernel could reach {needed} of the user's programs: the GPU's driver needs that"
    ]


def _run(given: dict[str, Any], folder: str, end: channel.Channel, found: layers.Layers) -> None:
    """Import the user's module as the user, then run the candidate confined.

    CUDA starts threads, which Landlock would not take with it, so it begins afterwards; and before the system's calls are
    refused, some of which it needs to begin.
    """
    path, class_name, device = given["path"], given["class_name"], given["device"]
    entering.begin(found, given.get("sharing") or entering.SHARING[0])
    memory_quota.keep(given)
    if device != "interpreter":
        candidate_process.load_helpers()
    user_module, cls = importing.load(path, class_name)
    init = examples.constructor(user_module, cls, path, class_name, given.get("inputs"))
    print(f"trial {os.getpid()} of {class_name}", file=sys.stderr, flush=True)
    mine = candidate_process.bounds(given, folder, sources_of(given))
    entering.enter(mine, found, [end.socket.fileno()])
    if device != "interpreter":  # there the tensors are small, and threads would only wait for each other
        select.select([end.socket], [], [])
        candidate_process.begin_cuda(torch.device(device))
        entering.refuse_calls(mine, found)
        torch.set_num_threads(given["threads"])
    serve(end, Trial(kernel_class(class_name), init, cls, device, examples.converted(given)))
