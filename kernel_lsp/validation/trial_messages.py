"""The trial's messages: received, answered by the method of that name, and their tensors taken from and put into lent memory."""

from __future__ import annotations

import traceback
from typing import Any

import torch

from kernel_lsp.validation import channel, exchange, failures, memory
from kernel_lsp.validation.trial import Trial


def serve(end: channel.Channel, trial: Trial) -> None:
    """Answer messages until the referee hangs up. A failure is an answer as well."""
    if trial.device.type == "cuda":
        torch.cuda.init()
    while True:
        try:
            message, tree, _ = end.receive()
        except channel.Closed:
            return
        if "block" in message:
            end.send(_with_lent_memory(trial, message, end.file))
        else:
            end.send(*_answered(trial, message, tree))


def _answered(trial: Trial, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
    try:
        return getattr(trial, message["do"])(message, tree)  # type: ignore[no-any-return]
    except failures.Failure as failure:
        return {"failed": failure.to_json()}, None
    except Exception as error:
        traceback.print_exc()
        return {"failed": failures.classify(error, trial.path, trial.source).to_json()}, None


def _with_lent_memory(trial: Trial, message: dict[str, Any], file: int | None) -> dict[str, Any]:
    """The answer to a message whose tensors lie in lent memory; its results are there, too."""
    opened = exchange.Opened(message, file, trial.device)
    try:
        answer, result = _answered(trial, {**message, "lent": True}, opened.tree)
        if "failed" not in answer:
            answer |= opened.put(result)
        return answer
    except Exception as error:
        traceback.print_exc()
        return {"failed": failures.classify(error, trial.path, trial.source).to_json()}
    finally:
        result = None
        opened.close()
        memory.release()  # the referee needs it now
