"""Language models from inside the editor: a kernel through each backend, and the way to a model where none is."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.hub.hub_server import Hub, Repository, gguf_repository
from tests.hub.hub_server import serving as serving_hub
from tests.server.test_flow import progress
from tests.tiny_model.cache import trained
from tests.tiny_model.cases import CASES, ROOT
from tests.tiny_model.serving import serving

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def tiny() -> Path:
    return trained()


@pytest.fixture(scope="session")
def address(tiny: Path) -> Iterator[str]:
    with serving(tiny / "tiny.gguf") as served:
        yield served.address


@pytest.mark.parametrize("name", ["kernelllm", "llama-cpp", "openai"])
async def test_code_action_to_validated_file(client: Any, tmp_path: Path, tiny: Path, address: str, name: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    sample = Path(shutil.copy(CASES["RMSNorm"].path, tmp_path))
    settings = {
        "generators": [name],
        "samples": 1,
        "temperature": 0.0,
        "kernelllm": {"model": str(tiny), "device": "cpu", "dtype": "fp32"},
        "llamaCpp": {"model": str(tiny / "tiny.gguf"), "context": 2048, "threads": 1},
        "openai": {"baseUrl": address, "mode": "completion"},
        "maxTokens": 600,
        "device": "interpreter",
    }
    await client.start(tmp_path, options={"settings": settings})
    uri = client.open(sample)
    action = (await client.actions(uri, 6, 8))["Generate Triton kernel for RMSNorm"]
    job = await client.execute(action.command.command, *action.command.arguments)
    await client.until(lambda: client.codes(uri), 180)
    assert client.codes(uri) == ["kernel-valid"], client.diagnostics[uri]
    told = await client.until(lambda: progress(client, job))
    assert told[-1].kind == "end" and told[-1].message == f"Correct, not timed; written by {name}"
    written = (tmp_path / "kernels" / "rms_norm_triton.py").read_text()
    assert f'generator = "{name}"' in written and "class RMSNormTriton(RMSNorm)" in written
    assert "RMSNormTriton" in await client.hover(uri, 6, 8)
    await client.execute("kernelLsp.showReport", *action.command.arguments)
    (shown,) = await client.until(lambda: client.shown_documents)
    report = Path(shown.uri.removeprefix("file://")).read_text()
    assert "What the model answered" in report and "class ModelNew" in report and f"<b>{name}</b>" in report
    assert client.messages == []
    about = await client.debug()
    assert about["heavyModules"] == [] and len(about["modelHostPids"]) == 1


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """The Hub with KernelLLM as GGUF files of some hundred kilobytes; the server under test uses it, and an empty cache."""
    with serving_hub() as served:
        files = {name.replace("tiny-", "facebook_KernelLLM-"): data for name, data in gguf_repository().items()}
        served.repositories["bartowski/facebook_KernelLLM-GGUF"] = Repository(files)
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
        yield served


async def test_the_hint_leads_to_a_model(client: Any, tmp_path: Path, hub: Hub) -> None:
    (tmp_path / "pyproject.toml").touch()
    sample = Path(shutil.copy(ROOT / "samples" / "sorted_unique.py", tmp_path))
    await client.start(tmp_path)
    uri = client.open(sample)
    line = next(i for i, text in enumerate(sample.read_text().splitlines()) if text.startswith("class "))
    action = (await client.actions(uri, line, 8))["Generate Triton kernel for SortedUnique"]
    await client.execute(action.command.command, *action.command.arguments)
    # The rules cannot do it, and no language model is here: said once, quietly, with the way to one.
    await client.until(lambda: "no-model" in client.codes(uri), 120)
    client.messages.clear()  # the user asked, and was told why there is no kernel
    get = next(a for title, a in (await client.actions(uri, line, 8)).items() if title.startswith("Get KernelLLM"))

    client.choice = "Cancel"  # the licence is not accepted: nothing is asked of the Hub
    await client.execute(get.command.command, *get.command.arguments)
    await client.until(lambda: types.WINDOW_SHOW_MESSAGE_REQUEST in client.requests)
    assert hub.asked == [] and not (tmp_path / "hub").exists()

    client.choice, hub.seconds_per_chunk = "Accept and download", 0.3
    await client.execute(get.command.command, *get.command.arguments)
    token = await client.until(
        lambda: next((t for t in client.progress_reports if str(t).startswith("pull-")), None), 30
    )
    await client.until(lambda: any(p.kind == "report" for p in client.progress_reports[token]), 30)
    await client.until(lambda: list((tmp_path / "hub").rglob("*.incomplete")), 30)
    client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))  # what was fetched is kept
    await client.until(lambda: client.progress_reports[token][-1].kind == "end", 5)
    assert "no-model" in client.codes(uri)
    assert list((tmp_path / "hub").rglob("*.incomplete"))

    hub.seconds_per_chunk = 0.0
    await client.execute(get.command.command, *get.command.arguments)
    await client.until(lambda: "no-model" not in client.codes(uri), 60)
    assert client.messages == []
    (fetched,) = (tmp_path / "hub").rglob("snapshots/*/*.gguf")
    assert fetched.read_bytes()[:4] == b"GGUF" and not list((tmp_path / "hub").rglob("*.incomplete"))


async def test_a_download_that_fails_says_why(client: Any, tmp_path: Path, hub: Hub) -> None:
    hub.repositories.clear()
    await client.start(tmp_path)
    client.choice = "Accept and download"
    await client.execute("kernelLsp.pullModel", {})
    (toast,) = await client.until(lambda: client.messages, 60)
    assert toast.type == types.MessageType.Error and "facebook_KernelLLM-GGUF" in toast.message


async def test_a_killed_model_host_is_said_and_the_next_request_works(client: Any, tmp_path: Path, tiny: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    sample = Path(shutil.copy(CASES["RMSNorm"].path, tmp_path))
    backend = {"model": str(tiny), "device": "cpu", "dtype": "fp32"}
    settings = {"generators": ["kernelllm"], "samples": 100, "kernelllm": backend, "device": "interpreter"}
    await client.start(tmp_path, options={"settings": settings})
    uri = client.open(sample)
    action = (await client.actions(uri, 6, 8))["Generate Triton kernel for RMSNorm"]
    job = await client.execute(action.command.command, *action.command.arguments)
    heard = client.progress_reports
    await client.until(
        lambda: any("tokens/s" in (p.message or "") for p in heard.get(job, []) if p.kind == "report"), 120
    )
    for pid in (await client.debug())["modelHostPids"]:
        os.kill(pid, signal.SIGKILL)
    told = await client.until(lambda: progress(client, job), 60)
    assert "SIGKILL" in told[-1].message
    job = await client.execute(action.command.command, *action.command.arguments)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"], 120)
