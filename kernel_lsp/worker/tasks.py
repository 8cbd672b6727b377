"""What a forked child does: read its parameters, run one task, answer in lines of JSON."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

from kernel_lsp import errors
from kernel_lsp.specimen import faults

#: task → (module, function); a function takes (parameters, emit) and returns the result as plain JSON data
TASKS = {
    "introspect": ("kernel_lsp.worker.specimen", "introspect"),
    "interface": ("kernel_lsp.worker.specimen", "interface"),
    "synthesize": ("kernel_lsp.worker.specimen", "synthesize"),
    "explain": ("kernel_lsp.worker.specimen", "explain"),
    "estimate": ("kernel_lsp.worker.specimen", "estimate"),
    "slice": ("kernel_lsp.slicing.subject", "slice_class"),
    "validate": ("kernel_lsp.worker.validating", "validate"),
    "tune": ("kernel_lsp.worker.validating", "tune"),
    "compare": ("kernel_lsp.worker.comparing", "compare"),
    "baseline": ("kernel_lsp.worker.baseline", "measure"),
    "lending": ("kernel_lsp.worker.gpu_sharing", "find"),
    "unmarked": ("kernel_lsp.worker.unmarked_process", "serve"),
    "compile": ("kernel_lsp.worker.compiling", "report"),
}

#: ``emit(event, data)`` sends an event to the server
Emit = Callable[[str, Any], None]


def run(task: str, parameters: int, answers: int, threads: int, sockets: list[int]) -> None:
    """Run ``task`` with the JSON in descriptor ``parameters``; events, then a result or an error, go to ``answers``.

    ``sockets``: descriptors that were given to this task.
    """

    def send(message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        while line:
            line = line[os.write(answers, line) :]

    with os.fdopen(parameters, "rb") as file:
        file.seek(0)
        given = json.load(file)
    given["threads"] = threads
    given["answers"] = answers
    given["sockets"] = sockets
    module, function = TASKS[task]
    try:
        result = getattr(importlib.import_module(module), function)(
            given, lambda event, data: send({"event": event, "data": data})
        )
        send({"result": result})
    except errors.UserError as error:
        send({"error": error.to_json()})
    except BaseException as error:
        traceback.print_exc()
        if full := faults.no_space(error, tempfile.gettempdir()):
            send({"error": full.to_json()})
            return
        where = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
        send({"error": errors.InternalError(detail=detail).to_json()})
    sys.stderr.flush()
