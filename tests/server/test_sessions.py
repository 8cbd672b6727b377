"""Settings from every side, trust, TCP, and what is refused."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.server.lsp_client import MODULE, SERVER, Client, write_kernel

MISSING = "/no/such/python"


def argument(uri: str, name: str = "Double") -> dict[str, Any]:
    return {"uri": uri, "className": name, "version": 1}


async def failure(client: Client, uri: str) -> str:
    """Generate, and the message of the diagnostic that comes of it."""
    await client.execute("kernelLsp.generate", argument(uri))
    await client.until(lambda: client.codes(uri) == ["cannot-validate"], 20)
    return client.diagnostics[uri][0].message


@pytest.mark.parametrize("side", ["pull", "push", "initialization", "pyproject"])
async def test_settings_arrive(client: Client, module: Path, side: str) -> None:
    """The interpreter is a setting whose effect is seen at once: there is no such program."""
    capabilities: Any = "visual-studio-code"
    options = None
    if side == "pull":
        client.set_configuration({"interpreter": MISSING}, section="kernelLsp")
    elif side == "push":
        capabilities = types.ClientCapabilities()
    elif side == "initialization":
        options = {"settings": {"interpreter": MISSING}}
    else:
        (module.parent / "pyproject.toml").write_text(f'[tool.kernel-lsp]\ninterpreter = "{MISSING}"\n')
    await client.start(module.parent, capabilities, options)
    if side == "push":
        settings = {"kernelLsp": {"interpreter": MISSING}}
        client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=settings))
    uri = client.open(module)
    if side == "pull":
        await asyncio.sleep(0.2)
    message = await failure(client, uri)
    assert MISSING in message and "kernelLsp.interpreter" in message
    # The user asked, and it failed; they may have been told before that it would.
    assert 1 <= len(client.messages) <= 2 and all(MISSING in one.message for one in client.messages)
    assert (await client.lenses(uri)) == ["Generate Triton kernel"]


async def test_the_editor_wins_over_pyproject(client: Client, module: Path) -> None:
    (module.parent / "pyproject.toml").write_text('[tool.kernel-lsp]\ninterpreter = "/from/pyproject"\n')
    await client.start(module.parent, options={"settings": {"interpreter": MISSING}})
    assert MISSING in await failure(client, client.open(module))


async def test_a_wrong_setting_is_logged_once(client: Client, module: Path) -> None:
    (module.parent / "pyproject.toml").write_text("[tool.kernel-lsp]\nsmaples = 3\n")
    await client.start(module.parent)
    uri = client.open(module)
    write_kernel(module)
    for _ in range(3):
        await client.lenses(uri)
    said = [m for m in client.log_messages if "smaples" in m.message]
    assert len(said) == 1 and "samples" in said[0].message
    assert client.messages == []


async def test_untrusted_runs_nothing(client: Client, module: Path) -> None:
    marker = module.parent / "ran"
    module.write_text(MODULE + f"open({str(marker)!r}, 'w')\n")
    write_kernel(module)
    await client.start(module.parent, options={"trusted": False, "settings": {"interpreter": sys.executable}})
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])  # reading a header runs nothing
    action = (await client.actions(uri, 4, 8))["Generate Triton kernel for Double"]
    assert action.disabled is not None and "trusted" in action.disabled.reason
    for command in ("kernelLsp.generate", "kernelLsp.validate"):
        with pytest.raises(Exception, match="not trusted"):
            await client.execute(command, argument(uri))
    client.change(uri, 2, module.read_text().replace("2.0", "3.0"))
    module.write_text(module.read_text().replace("2.0", "3.0"))
    client.save(uri)
    await asyncio.sleep(1.7)  # a trusted server would have started its worker by now
    about = await client.debug()
    assert about["workerPids"] == [] and about["jobs"] == [] and not marker.exists()


@pytest.mark.parametrize(
    ("name", "uri", "message"),
    [("Nothing", None, "No class Nothing"), ("Double", "file:///etc/passwd", "not open"), ("Double", "", "not open")],
)
async def test_commands_are_resolved_against_open_documents(
    client: Client, module: Path, name: str, uri: str | None, message: str
) -> None:
    await client.start(module.parent)
    opened = client.open(module)
    with pytest.raises(Exception, match=message):
        await client.execute("kernelLsp.generate", argument(opened if uri is None else uri, name))
    with pytest.raises(Exception, match="No class"):
        await client.execute("kernelLsp.generate")
    assert (await client.debug())["jobs"] == []


async def test_a_file_not_on_disk_yet(client: Client, tmp_path: Path) -> None:
    await client.start(tmp_path)
    uri = client.open(tmp_path / "new.py", MODULE)
    assert "Save the file" in await failure(client, uri)


async def test_an_edited_kernel_file_is_not_overwritten_without_asking(client: Client, module: Path) -> None:
    path = write_kernel(module)
    edited = path.read_text().replace("    pass", "    mine = 1")
    path.write_text(edited)
    client.choice = "Keep my edits"
    await client.start(module.parent)
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    await client.until(lambda: types.WINDOW_SHOW_MESSAGE_REQUEST in client.requests, 20)
    await client.until(lambda: "cannot-validate" in client.codes(uri))
    assert path.read_text() == edited and client.messages == []


async def test_saving_without_a_change_of_behaviour_starts_nothing(client: Client, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    commented = "# a comment\n" + MODULE
    client.change(uri, 2, commented)
    module.write_text(commented)
    client.save(uri)
    assert (await client.debug())["jobs"] == []


async def test_validate_on_save_can_be_switched_off(client: Client, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent, options={"settings": {"validateOnSave": False}})
    uri = client.open(module)
    changed = MODULE.replace("2.0", "3.0")
    client.change(uri, 2, changed)
    module.write_text(changed)
    client.save(uri)
    assert (await client.debug())["jobs"] == []
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])


async def test_tcp(client: Client, module: Path) -> None:
    """Two clients after one another; the one that says exit ends the process."""
    server = await asyncio.create_subprocess_exec(*SERVER, "--tcp", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE)
    assert server.stderr is not None
    line = (await asyncio.wait_for(server.stderr.readline(), 20)).decode()
    port = int(re.findall(r"Listening on 127\.0\.0\.1:(\d+)", line)[0])
    first = Client()
    await first.start_tcp("127.0.0.1", port)
    await first.initialize_session(types.InitializeParams(capabilities=types.ClientCapabilities()))
    assert await first.lenses(first.open(module)) == ["Generate Triton kernel"]
    first.protocol.writer.close()  # the connection is lost
    await first.stop()
    await client.start_tcp("127.0.0.1", port)
    await client.initialize_session(types.InitializeParams(capabilities=types.ClientCapabilities()))
    assert await client.lenses(client.open(module)) == ["Generate Triton kernel"]
    await client.shutdown_async(None)
    client.exit(None)
    assert await asyncio.wait_for(server.wait(), 5) == 0


async def test_a_wrong_address_is_a_usage_error() -> None:
    server = await asyncio.create_subprocess_exec(*SERVER, "--tcp", "nowhere", stderr=asyncio.subprocess.PIPE)
    _, stderr = await server.communicate()
    assert server.returncode == 2 and b"HOST:PORT" in stderr


async def test_closing_a_document_takes_its_diagnostics_along(client: Client, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    await client.until(lambda: client.codes(uri) == [])
