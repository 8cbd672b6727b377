"""What goes wrong on this machine: cancels, kills, too little memory, files that are damaged or not there."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.modelhost.conftest import HOST, Host, on_llama_cpp, on_transformers, running

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session")]

ENDLESS = {"prompt": "x" * 200, "samples": 8, "temperature": 1.0, "max_tokens": 700, "seed": 1, "ignore_eos": True}


@pytest.mark.parametrize("load", [on_transformers, on_llama_cpp])
async def test_a_cancel_is_answered_and_the_next_request_works(host: Host, tiny_model, load) -> None:
    await host.ask("load", **load(tiny_model))
    pid = host.worker.pid
    asking = asyncio.create_task(host.ask("generate", **{**ENDLESS, "samples": 400}))
    await asyncio.sleep(0)
    await asyncio.wait_for(host.arrived.wait(), 20)
    began = time.monotonic()
    asking.cancel()
    await asyncio.wait({asking})
    assert time.monotonic() - began < 0.55
    assert host.worker.pid == pid, "it answered, and was not killed"
    await host.ask("generate", prompt="x", samples=1, temperature=0, max_tokens=5)
    assert host.answers


async def test_a_cancel_stops_the_evaluation_of_a_long_prompt(host: Host, tiny_model) -> None:
    """llama.cpp: 60,000 tokens take many seconds; transformers: the same between modules."""
    await host.ask("load", **{**on_llama_cpp(tiny_model), "context": 60000})
    pid = host.worker.pid
    asking = asyncio.create_task(host.ask("generate", prompt="x" * 40000, samples=1, temperature=0, max_tokens=5))
    await asyncio.sleep(1.5)
    assert not asking.done() and not host.events, "the prompt was to be long enough"
    began = time.monotonic()
    asking.cancel()
    await asyncio.wait({asking})
    assert time.monotonic() - began < 0.55 and host.worker.pid == pid
    await host.ask("generate", prompt="x", samples=1, temperature=0, max_tokens=5)
    assert host.answers


async def test_a_cancel_while_loading_ends_within_a_second(tiny_model) -> None:
    async with running() as host:
        await host.worker.start()
        loading = asyncio.create_task(host.ask("load", **on_transformers(tiny_model)))
        await asyncio.sleep(0.3)  # importing torch
        began = time.monotonic()
        loading.cancel()
        await asyncio.wait({loading})
        assert time.monotonic() - began < 1
        assert (await host.ask("load", **on_transformers(tiny_model)))["name"] == "tiny"


async def test_a_killed_host_is_an_error_and_the_next_request_starts_another(tiny_model) -> None:
    async with running() as host:
        await host.ask("load", **on_llama_cpp(tiny_model))
        asking = asyncio.create_task(host.ask("generate", **{**ENDLESS, "samples": 400}))
        await asyncio.sleep(0)
        await asyncio.wait_for(host.arrived.wait(), 20)
        assert host.worker.pid is not None
        os.kill(host.worker.pid, signal.SIGKILL)
        with pytest.raises(Exception, match="SIGKILL"):
            await asking
        error = await host.error("generate", **ENDLESS)
        assert "Load one first" in str(error)


async def test_it_ends_with_its_input_also_while_it_works(tiny_model) -> None:
    process = subprocess.Popen(
        [sys.executable, str(HOST)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin and process.stdout
    for number, (method, params) in enumerate(
        [("load", on_llama_cpp(tiny_model)), ("generate", {**ENDLESS, "samples": 400})]
    ):
        process.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
    process.stdin.flush()
    while b'"text"' not in process.stdout.readline():
        pass
    process.stdin.close()
    assert process.wait(2) == 0


async def test_hello_imports_nothing_heavy() -> None:
    async with running() as host:
        began = time.monotonic()
        hello = await host.worker.start()
        assert time.monotonic() - began < 2
        assert set(hello["packages"]) == {"torch", "transformers", "llama_cpp", "openai"}
        assert all(hello["packages"].values()) and hello["python"].startswith("3.")
        mapped = Path(f"/proc/{host.worker.pid}/maps").read_text()
        assert "libtorch" not in mapped and "libllama" not in mapped


async def test_the_same_load_is_answered_from_what_is_loaded(host: Host, tiny_model) -> None:
    first = await host.ask("load", **on_llama_cpp(tiny_model))
    began = time.monotonic()
    assert await host.ask("load", **on_llama_cpp(tiny_model)) == first and not host.events
    assert time.monotonic() - began < 0.2
    assert await host.ask("unload") == {}
    assert "Load one first" in str(await host.error("tokenize", prompt="x"))


@pytest.mark.parametrize("load", [on_transformers, on_llama_cpp])
async def test_too_large_for_the_memory_that_may_be_used(host: Host, tiny_model, load) -> None:
    error = await host.error("load", **{**load(tiny_model), "memory": 100_000})
    assert type(error).__name__ == "ModelTooLarge"
    assert "where 100 kB can be used" in str(error) and ("603 kB" in str(error) or "619 kB" in str(error))


async def test_a_smaller_dtype_or_quantisation_is_proposed(host: Host, tiny_model) -> None:
    error = await host.error("load", **{**on_transformers(tiny_model), "memory": 350_000})
    assert "bf16" in str(error)
    error = await host.error("load", **{**on_transformers(tiny_model), "memory": 200_000, "dtype": "bf16"})
    assert "Q8_0" in str(error)


async def test_models_that_are_not_there(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = await host.error("load", backend="transformers", model="nobody/never-pulled", device="cpu", dtype="fp32")
    assert type(error).__name__ == "ModelMissing" and "kernel-lsp models pull nobody/never-pulled" in str(error)
    error = await host.error("load", backend="transformers", model=str(tmp_path), device="cpu", dtype="fp32")
    assert type(error).__name__ == "ModelMissing" and "config.json" in str(error)
    error = await host.error("load", backend="llama-cpp", model=str(tmp_path / "no.gguf"))
    assert type(error).__name__ == "ModelMissing" and "no such file" in str(error)
    error = await host.error("load", backend="transformers", model=str(tmp_path), device="cuda:7", dtype="fp32")
    assert type(error).__name__ == "NoSuchDevice"


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:300_000])


def no_header(file: Path) -> None:
    file.write_bytes(b"<html>" + file.read_bytes()[6:])


def gone(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize(
    ("damage", "file", "says"),
    [
        (cut_short, "model.safetensors", "cut short"),
        (no_header, "model.safetensors", "model.safetensors"),
        (gone, "model.safetensors", "no weights"),
        (no_header, "config.json", "config.json"),
        (cut_short, "tokenizer.json", "tokenizer"),
        (no_header, "tokenizer.json", "tokenizer"),
    ],
)
async def test_damaged_files_of_transformers(
    host: Host, tiny_model, tmp_path: Path, damage, file: str, says: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny_model[0], folder)
    damage(folder / file)
    if file == "tokenizer.json" and damage is cut_short:
        (folder / file).write_bytes((tiny_model[0] / file).read_bytes()[:2000])
    error = await host.error("load", **{**on_transformers(tiny_model), "model": str(folder)})
    assert type(error).__name__ == "ModelDamaged" and says in str(error) and str(folder) in str(error)


@pytest.mark.parametrize(("damage", "says"), [(cut_short, "corrupted or incomplete"), (no_header, "not a GGUF file")])
async def test_damaged_gguf(host: Host, tiny_model, tmp_path: Path, damage, says: str) -> None:
    copy = tmp_path / "copy.gguf"
    shutil.copy(tiny_model[1], copy)
    damage(copy)
    error = await host.error("load", **{**on_llama_cpp(tiny_model), "model": str(copy)})
    assert type(error).__name__ == "ModelDamaged" and says in str(error)
    await host.ask("load", **on_llama_cpp(tiny_model))


async def test_missing_packages_come_with_the_command(tiny_model) -> None:
    """An interpreter without site-packages has none of them."""
    from tests.modelhost.conftest import Worker

    worker = Worker([sys.executable, "-S", "-E"], None, main=HOST)
    try:
        assert not any((await worker.start())["packages"].values())
        for load in (
            on_transformers(tiny_model),
            on_llama_cpp(tiny_model),
            {"backend": "openai", "base_url": "http://a/v1"},
        ):
            with pytest.raises(Exception, match=r"Install it there: .* -m pip install ") as caught:
                await worker.request("load", load, seconds=20, stage="loading")
            assert type(caught.value).__name__ == "ModelPackageMissing"
    finally:
        await worker.close()
