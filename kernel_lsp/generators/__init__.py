"""Where candidates come from: one file per source, one protocol.

A generator is a module with two functions:

- ``missing(settings)``: why it cannot run here, "" if it can. Cheap: no process is started, nothing is imported.
- ``generate(request)``: an async generator over a ``Request``. It yields candidates, best guess first, lists of candidates
  that are one kernel in several schedules, or ``Validated`` ones that are rejected already, and raises a ``UserError`` when
  it has none.

It knows nothing of queues, validation or files. To add one: write its file, name it in ``_MODULES``.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kernel_lsp.class_schema import Specimen
from kernel_lsp.errors import GeneratorUnknown
from kernel_lsp.schema import Candidate, Device, Source, Validated
from kernel_lsp.settings import Settings


class Host(Protocol):
    """A model host that has a model loaded (docs/architecture.md: the model host's protocol)."""

    loaded: dict[str, Any]  # its answer to "load"

    async def ask(
        self, method: str, params: dict[str, Any], on_event: Callable[[str, Any], None], seconds: float
    ) -> Any:
        """Its answer to one request.

        Raises:
            ModelHostTimedOut: it gave none within ``seconds``.
            UserError: the model's backend refuses or fails.
        """


@dataclass
class Request:
    """What a generator is asked for, and what it may use.

    Attributes:
        inputs: the table of example inputs from pyproject.toml, or None.
        gpu: the device that candidates are timed on, as far as it is known.
        samples: the most candidates wanted.
        ask_worker: ``await ask_worker(method, stage)`` sends a request about this class to the worker.
        progress: ``progress(message)`` says what is going on.
        source: what the generator did; it fills in what only it knows.
        specimen: what is known of the class; the first that learns it stores it here.
        host: ``async with host(commands, load, idle_seconds) as h`` lends a model host with that model loaded; the first
            of ``commands`` whose interpreter has the packages is used.
        generating: ``async with generating(device)`` around generation: nothing is timed on that GPU meanwhile.
        settled: ``await settled()`` returns when all that was yielded has been validated and, with a GPU, timed. Not
            inside ``generating``.
        validated: the entry in the report for a candidate that was yielded, and its index there; None before it is validated.
        enough: why nothing more is wanted ("the time is over"), or "".
        remaining: seconds of the time budget that are left.
    """

    path: Path
    class_name: str
    inputs: dict[str, Any] | None
    device: str
    samples: int
    ask_worker: Callable[[str, str], Awaitable[Any]]
    progress: Callable[[str], None]
    settings: Settings = field(default_factory=Settings)
    source: Source = field(default_factory=lambda: Source(""))
    specimen: Specimen | None = None
    gpu: Device | None = None
    host: Callable[[Sequence[Sequence[str]], dict[str, Any], float], AbstractAsyncContextManager[Host]] | None = None
    generating: Callable[[str], AbstractAsyncContextManager[None]] | None = None
    settled: Callable[[], Awaitable[None]] | None = None
    validated: Callable[[Candidate], tuple[Validated, int] | None] = lambda candidate: None
    enough: Callable[[], str] = lambda: ""
    remaining: Callable[[], float] = lambda: float("inf")


class Generator(Protocol):
    """``generate(request)`` of a generator's module."""

    def __call__(self, request: Request) -> AsyncIterator[Candidate | list[Candidate] | Validated]:
        """Candidates, or several to be timed against each other, or one that was validated already."""


_MODULES = {
    "recall": "kernel_lsp.generators.recall",
    "synthesizer": "kernel_lsp.generators.synthesizer",
    "kernelllm": "kernel_lsp.generators.kernelllm",
    "llama-cpp": "kernel_lsp.generators.llama_cpp",
    "openai": "kernel_lsp.generators.openai",
}


def names() -> list[str]:
    """The generators that settings and ``--generator`` may name."""
    return list(_MODULES)


def find(name: str) -> Generator:
    """The generator of that name; its module is imported only now.

    Raises:
        GeneratorUnknown: there is none.
    """
    generate: Generator = _module(name).generate
    return generate


def missing(name: str, settings: Settings) -> str:
    """Why a generator cannot run here, "" if it can.

    Raises:
        GeneratorUnknown: there is none of that name.
    """
    why: str = _module(name).missing(settings)
    return why


def chosen(settings: Settings) -> list[str]:
    """The generators to ask: those that the settings name, else every one that can run here."""
    return list(dict.fromkeys(settings.generators)) or [name for name in _MODULES if not missing(name, settings)]


def that_write(settings: Settings) -> list[str]:
    """Of those to ask, the ones that write kernels: where they are measured, nothing is recalled unless it is named."""
    return [name for name in chosen(settings) if name != "recall" or name in settings.generators]


def _module(name: str) -> Any:
    if name not in _MODULES:
        raise GeneratorUnknown(name=name, known=", ".join(_MODULES))
    return importlib.import_module(_MODULES[name])
