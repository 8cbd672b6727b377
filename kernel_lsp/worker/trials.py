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

from kernel_lsp.validation import channel, sandbox
from kernel_lsp.validation.referee import Reach
from kernel_lsp.validation.trial import Trial, serve
from kernel_lsp.worker import examples, importing, processes


def fork(given: dict[str, Any], folder: str, source: str, others: Sequence[Reach] = (), waits: bool = False) -> Reach:
    """Start a trial in a process of its own; it keeps one end of a socket and nothing else of this process.

    ``folder`` is where it may write; ``others`` are the trials that were forked before. With ``waits`` it touches the
    GPU only when it is asked for something.
    """
    mine, theirs = channel.pair()
    pid = processes.fork()
    if pid == 0:
        os.close(given["answers"])  # the verdict is not the trial's to send
        mine.close()
        for other in others:
            other.channel.socket.close()
        try:
            if waits:
                select.select([theirs], [], [])
            _run(given, folder, channel.Channel(theirs))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    theirs.close()
    ended: list[str] = []

    def reap() -> str:
        if not ended:
            _, status = os.waitpid(pid, 0)
            ended.append(processes.describe(status))
        return ended[0]

    def kill() -> None:
        if not ended:
            processes.kill_group(pid)
            reap()

    return Reach(channel.Channel(mine), source, reap, kill, time.monotonic() + given["seconds"])


def _run(given: dict[str, Any], folder: str, end: channel.Channel) -> None:
    path, class_name, device = given["path"], given["class_name"], given["device"]
    if device != "interpreter":
        import triton

        torch.cuda.init()
        torch.cuda.set_device(torch.device(device))
        # Triton's own helper library comes from the user's cache: with one of our own a C compiler would build it anew.
        _ = triton.runtime.driver.active.utils
    sandbox.enter(folder, device == "interpreter")
    if device != "interpreter":  # there the tensors are small, and threads would only wait for each other
        torch.set_num_threads(given["threads"])
    user_module, cls = importing.load(path, class_name)
    init = examples.constructor(user_module, cls, path, class_name, given.get("inputs"))
    kernel_class = class_name.rpartition(".")[2] + "Triton"
    print(f"trial {os.getpid()} of {kernel_class}", file=sys.stderr)
    serve(end, Trial(kernel_class, init, cls, device))
