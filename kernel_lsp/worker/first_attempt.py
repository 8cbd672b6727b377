"""A first attempt in a fork of its own, so that what it leaves behind in the user's modules is gone with it."""

from __future__ import annotations

import json
import os
import threading
import traceback
from collections.abc import Callable
from typing import Any

from kernel_lsp import child_processes, errors


def attempt(task: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """What ``task`` returns as plain JSON data, or None where it raised anything but a UserError, or crashed.

    A UserError is raised here again. The fork stays in this process's group, so that a signal to the group ends both. Where
    the user's modules have started threads a fork could wait for their locks for ever, so ``task`` runs here.

    Raises:
        UserError: the task's own.
    """
    answer = _answer(task) if threading.active_count() > 1 else _forked(task)
    if answer is None:
        return None
    if "error" in answer:
        raise errors.from_json(answer["error"])
    return answer["result"]


def _answer(task: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    try:
        return {"result": task()}
    except errors.UserError as error:
        return {"error": error.to_json()}
    except (Exception, SystemExit):
        traceback.print_exc()
        return None


def _forked(task: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            child_processes.die_with(parent)
            answer = _answer(task)
            with os.fdopen(writing, "w", encoding="utf-8") as file:
                json.dump(answer, file)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as file:
        text = file.read()
    os.waitpid(pid, 0)
    try:
        return json.loads(text)
    except ValueError:  # it crashed
        return None
