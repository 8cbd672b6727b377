"""What an exception in a candidate means: a status, a reason a person can act on, and a line in its source."""

from __future__ import annotations

import ast
import re
import traceback
from dataclasses import dataclass
from typing import Any

import torch

#: how torch says that memory is short, beside its own class; of a GPU's memory it says nothing where it cannot ask NVML,
#: as in a confined process
_SHORT_OF_MEMORY = {"DefaultCPUAllocator": "", "nvmlInit": "CUDA out of memory"}


@dataclass
class Failure(Exception):
    """``status`` as in schema.Status, or "not-interpretable"."""

    status: str
    reason: str
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As the trial sends it to the referee."""
        return {"status": self.status, "reason": self.reason, "line": self.line}


def sentence(error: BaseException, limit: int = 400) -> str:
    """The exception's type and the first line of its text, of ``limit`` characters at most."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return said if len(said) <= limit else said[: limit - 1] + "…"


def chain(error: BaseException) -> list[BaseException]:
    """The error, its cause, the cause of that, and so on."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return found


def line_in(path: str, error: BaseException) -> int | None:
    """The deepest line of the candidate's file on the way to ``error``."""
    for one in reversed(chain(error)):
        lines = [f.lineno for f in traceback.extract_tb(one.__traceback__) if f.filename == path]
        if lines:
            return lines[-1]
    return None


def _compiler_line(source: str, error: BaseException) -> int | None:
    """The line of a CompilationError, which counts from its function's ``def``; of the innermost function there is."""
    starts = {n.name: n.lineno for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)}
    for one in reversed(chain(error)):
        src, node = getattr(one, "src", None), getattr(one, "node", None)
        name = re.match(r"\s*def\s+(\w+)", src) if isinstance(src, str) else None
        if name and name.group(1) in starts and node is not None and getattr(node, "lineno", None):
            return starts[name.group(1)] + node.lineno - 1
    return None


def _compiler_reason(error: BaseException) -> str:
    """The innermost message, without the excerpt of the source that Triton puts before it."""
    inner = chain(error)[-1]
    message = getattr(inner, "error_message", None) or getattr(inner, "message", None)
    if isinstance(message, str) and message.strip():
        return message.strip().splitlines()[0]
    lines = [line.strip() for line in str(inner).splitlines() if line.strip() and set(line.strip()) != {"^"}]
    return lines[-1] if lines else sentence(inner)


def classify(error: BaseException, path: str, source: str) -> Failure:
    """The failure that an exception out of a candidate's launcher or kernel is."""
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import InterpreterError, OutOfResources, PTXASError

    if isinstance(error, Failure):
        return error
    line = line_in(path, error)
    for one in chain(error):
        said = next((words for sign, words in _SHORT_OF_MEMORY.items() if sign in str(one)), None)
        if said is not None or isinstance(one, (torch.OutOfMemoryError, MemoryError)):
            return Failure("out-of-memory", said or sentence(one), line)
        if isinstance(one, OutOfResources):
            return Failure("compile-error", str(one).splitlines()[0], line)
        if isinstance(one, PTXASError):
            return Failure("compile-error", "ptxas: " + sentence(one), line)
    if any(isinstance(one, CompilationError) for one in chain(error)):
        return Failure("compile-error", _compiler_reason(error), _compiler_line(source, error) or line)
    if any(isinstance(one, InterpreterError) for one in chain(error)):
        inner = chain(error)[-1]
        if isinstance(inner, NotImplementedError) and "interpreter" in str(inner):
            return Failure("not-interpretable", str(inner), line)
        if isinstance(inner, AssertionError):
            return Failure("wrong", f"an assertion of the kernel fails: {sentence(inner)}", line)
        if isinstance(inner, OverflowError):  # where a GPU goes round
            return Failure("wrong", f"an integer overflows: {inner}", line)
        return Failure("compile-error", sentence(inner), line)
    return Failure("crashed", sentence(error), line)
