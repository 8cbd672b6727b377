"""Files that change without the editor: a git checkout, with a client that tells of it and with one that cannot."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from lsprotocol import types

from tests.repository import branch_off, git
from tests.server.lsp_client import MODULE, Client, write_kernel

pytest.importorskip("torch", reason="the worker needs torch")
pytest.importorskip("triton", reason="the worker needs triton")

USES = "from helper import FACTOR\n" + MODULE.replace("x * 2.0", "x * FACTOR")


@pytest.fixture
def branches(module: Path) -> Path:
    """The class of ``main``, with a kernel; on the branch ``other`` what it imports has another value."""
    folder = module.parent
    module.write_text(USES)
    (folder / "helper.py").write_text("FACTOR = 2.0\n")
    write_kernel(module)
    branch_off(folder, folder / "helper.py", 300)
    return folder


async def test_while_others_keep_the_gpu_busy_a_save_alone_is_validated(
    client: Client, module: Path, branches: Path, gpu_driver: Path
) -> None:
    gpu_driver.write_text(f"{os.getpid()} 87\n")  # this is no process of the server's
    await client.start(branches, types.ClientCapabilities())
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    await client.until(lambda: watching(client, "system"))
    git(branches, "checkout", "-q", "other")
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    said = f"not validated now: the GPU is 87 % busy by pid {os.getpid()}"
    await client.until(lambda: any(said in message.message for message in client.log_messages))
    assert (await client.debug())["jobs"] == []
    client.save(uri)
    await client.until(lambda: running(client), 10)


async def running(client: Client) -> bool:
    return bool((await client.debug())["jobs"])


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_checkout_under_a_client_without_watching(client: Client, module: Path, branches: Path) -> None:
    """The server watches: the class is validated again, since what it imports changed, and then known."""
    await client.start(branches, types.ClientCapabilities())
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    await client.until(lambda: watching(client, "system"))

    git(branches, "checkout", "-q", "other")
    await client.until(lambda: client.codes(uri) == ["kernel-outdated"], 100)  # its body launches nothing

    (branches / "sub").mkdir()  # a folder that appears later, and a file in it at once
    (branches / "sub" / "new.py").write_text("")
    git(branches, "checkout", "-q", "main")
    began = time.monotonic()
    await client.until(lambda: client.codes(uri) == ["kernel-valid"], 10)  # this machine validated it before
    assert time.monotonic() - began < 5


async def test_a_checkout_that_the_client_tells_of(client: Client, module: Path, branches: Path) -> None:
    """Many events are one round; a document that the editor loads later is validated without a save."""
    git(branches, "checkout", "-q", "other")
    changed = module.read_text().replace("x * FACTOR", "x + FACTOR")
    module.write_text(changed)
    git(branches, "commit", "-qam", "sum")
    git(branches, "checkout", "-q", "main")
    await client.start(branches)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    await client.until(lambda: watching(client, "client"))

    git(branches, "checkout", "-q", "other")
    files = [types.FileEvent(path.as_uri(), types.FileChangeType.Changed) for path in branches.glob("*.py")]
    for event in files:
        client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    assert (await client.debug())["jobs"] == []  # what the editor shows is not what is on disk
    client.change(uri, 2, changed)
    await client.until(lambda: begins(client, uri, "…"))
    assert [job.rpartition("-")[0] for job in (await client.debug())["jobs"]] == ["validate"]


@pytest.mark.parametrize("options", [{"paused": True}, {"trusted": False}])
async def test_without_trust_or_paused_the_display_alone_follows(
    client: Client, module: Path, branches: Path, options: dict[str, bool]
) -> None:
    await client.start(branches, types.ClientCapabilities(), options)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    await client.until(lambda: watching(client, "system"))
    git(branches, "checkout", "-q", "other")
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    found = await client.debug()
    assert found["jobs"] == [] and found["workerPids"] == []


async def watching(client: Client, how: str) -> bool:
    return bool((await client.debug())["watching"] == how)


async def begins(client: Client, uri: str, mark: str) -> bool:
    return (await client.lenses(uri))[0].startswith(mark)
