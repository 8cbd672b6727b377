"""Where candidates come from: one file per source, one protocol.

A generator is an async function over a ``Request``: it yields candidates, best guess first, and raises a ``UserError``
when it has none. It knows nothing of queues, validation or files. To add one: write its file, name it in ``_MODULES``.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kernel_lsp.errors import GeneratorUnknown
from kernel_lsp.schema import Candidate, Specimen


@dataclass
class Request:
    """What a generator is asked for, and what it may use.

    Attributes:
        inputs: the table of example inputs from pyproject.toml, or None.
        samples: the most candidates wanted.
        ask_worker: ``await ask_worker(method, stage)`` sends a request about this class to the worker.
        progress: ``progress(message)`` says what is going on.
        specimen: what is known of the class; whoever learns it first leaves it here.
    """

    path: Path
    class_name: str
    inputs: dict[str, Any] | None
    device: str
    samples: int
    ask_worker: Callable[[str, str], Awaitable[Any]]
    progress: Callable[[str], None]
    specimen: Specimen | None = None


class Generator(Protocol):
    """``generate(request)`` of a generator's module."""

    def __call__(self, request: Request) -> AsyncIterator[Candidate]: ...


_MODULES = {"synthesizer": "kernel_lsp.generators.synthesizer"}


def names() -> list[str]:
    return list(_MODULES)


def find(name: str) -> Generator:
    """The generator of that name; its module is imported only now.

    Raises:
        GeneratorUnknown: there is none.
    """
    if name not in _MODULES:
        raise GeneratorUnknown(name=name, known=", ".join(_MODULES))
    generate: Generator = importlib.import_module(_MODULES[name]).generate
    return generate
