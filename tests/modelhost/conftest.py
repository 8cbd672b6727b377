"""A tiny model on disk in both formats, and real model hosts to talk to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kernel_lsp import errors
from kernel_lsp.jobs.client import Worker
from tests.tiny_model.serving import serving

HOST = Path(__file__).parents[2] / "kernel_lsp" / "modelhost" / "__main__.py"


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Several libraries with a thread a core each, on a few shared cores, slow a tiny model down a hundredfold."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    yield
    os.environ.pop("OMP_NUM_THREADS")
    if before is not None:
        os.environ["OMP_NUM_THREADS"] = before


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> tuple[Path, Path]:
    """The folder with safetensors, and the GGUF file, of the same model."""
    from tests.modelhost import tiny

    return tiny.make(tmp_path_factory.mktemp("models"))


class Host:
    """A real model host. ``ask`` waits for a result; ``events`` holds what came before it, as (name, data)."""

    def __init__(self) -> None:
        self.worker = Worker([sys.executable], None, main=HOST)
        self.events: list[tuple[str, Any]] = []
        self.arrived = asyncio.Event()

    async def ask(self, method: str, seconds: float = 60, **params: Any) -> Any:
        self.events, self.arrived = [], asyncio.Event()

        def on_event(name: str, data: Any) -> None:
            self.events.append((name, data))
            self.arrived.set()

        return await self.worker.request(method, params, seconds=seconds, stage=method, on_event=on_event)

    async def error(self, method: str, **params: Any) -> errors.UserError:
        """The error that the request ends in."""
        with pytest.raises(errors.UserError) as caught:
            await self.ask(method, **params)
        return caught.value

    def said(self, sample: int = 0) -> str:
        """What was streamed of a sample."""
        return "".join(d["text"] for name, d in self.events if name == "text" and d["sample"] == sample)

    @property
    def answers(self) -> dict[int, dict[str, Any]]:
        return {data["sample"]: data for name, data in self.events if name == "answer"}


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Host]:
    host = Host()
    try:
        yield host
    finally:
        await host.worker.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def host(one_thread: None) -> AsyncIterator[Host]:
    """One host for all tests that leave it in order: importing transformers takes seconds."""
    async with running() as started:
        yield started


def on_transformers(tiny_model: tuple[Path, Path]) -> dict[str, Any]:
    return {"backend": "transformers", "model": str(tiny_model[0]), "device": "cpu", "dtype": "fp32"}


def on_llama_cpp(tiny_model: tuple[Path, Path]) -> dict[str, Any]:
    return {"backend": "llama-cpp", "model": str(tiny_model[1]), "gpu_layers": 0, "context": 1024, "threads": 1}


def on_server(base_url: str, **more: Any) -> dict[str, Any]:
    given = {"model": "", "api_key_env": "", "timeout": 20, "retries": 3, "parallel": 2, **more}
    return {"backend": "openai", "base_url": base_url, **given}


@pytest.fixture(scope="session")
def llama_server(tiny_model: tuple[Path, Path]) -> Iterator[str]:
    """The address of llama-cpp-python's own server with the tiny model."""
    with serving(tiny_model[1], context=1024) as served:
        yield served.address
