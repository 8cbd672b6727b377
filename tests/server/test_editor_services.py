"""What an editor's extension builds on beside LSP: status, pause, classes, devices, review, settings by folder."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsprotocol import types

from kernel_lsp import kernel_file
from tests.server.lsp_client import BODY, MODULE, Client, write_kernel

pytest.importorskip("torch", reason="the worker needs torch")
pytest.importorskip("triton", reason="the worker needs triton")

CPU = {"interpreter": sys.executable, "device": "interpreter"}


def argument(uri: str) -> dict[str, Any]:
    return {"uri": uri, "className": "Double", "version": 1}


def data(value: Any) -> Any:
    return value._asdict() if hasattr(value, "_asdict") else vars(value) if hasattr(value, "__dict__") else value


@pytest.fixture
def notified(client: Client) -> dict[str, list[Any]]:
    """The parameters of our own notifications, by method."""
    seen: dict[str, list[Any]] = {f"kernelLsp/{name}": [] for name in ("status", "proposal", "failure")}
    for method, found in seen.items():
        client.feature(method)(lambda params, found=found: found.append(data(params)))
    return seen


def states(notified: dict[str, list[Any]]) -> list[str]:
    return [status["state"] for status in notified["kernelLsp/status"]]


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_status_goes_from_busy_to_idle_and_pause_lets_go(client: Client, module: Path, notified: Any) -> None:
    await client.start(module.parent, options={"status": True, "settings": CPU})
    uri = client.open(module)
    (found,) = [data(c) for c in await client.execute("kernelLsp.classes", {"uri": uri})]
    assert (found["className"], found["kernel"], found["running"]) == ("Double", None, None)
    job = await client.execute("kernelLsp.generate", argument(uri))
    await client.until(lambda: "busy" in states(notified))
    busy = notified["kernelLsp/status"][-1]
    assert [data(j)["id"] for j in busy["jobs"]] == [job] and data(busy["jobs"][0])["className"] == "Double"
    await client.until(lambda: states(notified)[-1] == "idle", 90)
    (found,) = [data(c) for c in await client.execute("kernelLsp.classes", {"uri": uri})]
    kernel = module.parent / "kernels" / "double_triton.py"
    assert found["kernel"] == kernel.as_uri()

    # Paused: the worker is gone, and a save that changes the maths is not validated.
    (worker,) = (await client.debug())["workerPids"]
    await client.execute("kernelLsp.pause")
    await client.until(lambda: states(notified)[-1] == "paused")
    await client.until(lambda: not psutil.pid_exists(worker))
    changed = MODULE.replace("x * 2.0", "x * 3.0")
    client.change(uri, 2, changed)
    module.write_text(changed)
    client.save(uri)
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    debug = await client.debug()
    assert debug["jobs"] == [] and debug["workerPids"] == [] and debug["paused"] is True

    # Resumed: what was saved meanwhile is validated.
    await client.execute("kernelLsp.resume")
    await client.until(lambda: client.codes(uri) == ["kernel-outdated"], 90)
    await client.until(lambda: states(notified)[-1] == "idle")
    assert client.messages == []  # this validation was started in the background


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_validation_that_pause_cancels_is_made_up_for(client: Client, module: Path) -> None:
    await client.start(module.parent, options={"settings": CPU})
    kernel = write_kernel(module)
    uri = client.open(module)
    changed = MODULE.replace("x * 2.0", "x * 3.0")
    client.change(uri, 2, changed)
    module.write_text(changed)
    client.save(uri)

    async def validating() -> Any:
        return (await client.debug())["jobs"]

    await client.until(validating)
    await client.execute("kernelLsp.pause")
    assert (await client.debug())["jobs"] == [] and BODY in kernel.read_text()
    await client.execute("kernelLsp.resume")
    await client.until(lambda: client.codes(uri) == ["kernel-outdated"], 90)


@pytest.mark.slow
async def test_a_kernel_file_that_is_deleted_meanwhile_is_written(client: Client, module: Path, notified: Any) -> None:
    await client.start(module.parent, options={"review": True, "status": True, "settings": CPU})
    kernel = write_kernel(module)
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    await client.until(lambda: "busy" in states(notified))
    kernel.unlink()
    await client.until(lambda: states(notified)[-1] == "idle", 90)
    assert "@triton.jit" in kernel.read_text() and notified["kernelLsp/proposal"] == []


async def test_the_class_of_a_kernel_file_is_its_headers(client: Client, module: Path) -> None:
    await client.start(module.parent)
    kernel = write_kernel(module)
    uri = client.open(kernel)
    (found,) = [data(c) for c in await client.execute("kernelLsp.classes", {"uri": uri})]
    assert (found["className"], found["kernel"]) == ("Double", kernel.as_uri())


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_paused_from_the_start_does_what_is_asked(client: Client, module: Path, notified: Any) -> None:
    await client.start(module.parent, options={"status": True, "paused": True, "settings": CPU})
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    await client.until(lambda: client.codes(uri) == ["kernel-valid"], 90)
    await client.until(lambda: states(notified)[-1] == "paused")

    async def let_go() -> bool:
        return (await client.debug())["workerPids"] == []

    await client.until(let_go)


async def test_a_set_up_that_does_not_work_is_an_error_until_it_does(
    client: Client, module: Path, notified: Any
) -> None:
    client.set_configuration({"interpreter": "/no/such/python"}, section="kernelLsp")
    await client.start(module.parent, options={"status": True})
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    await client.until(lambda: states(notified)[-1:] == ["error"], 20)
    assert "/no/such/python" in notified["kernelLsp/status"][-1]["message"]
    client.set_configuration(CPU, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    await client.until(lambda: client.codes(uri) == [], 20)  # that it failed says nothing of the new interpreter
    await client.until(lambda: states(notified)[-1] == "idle")


@pytest.mark.slow
async def test_status_and_review_come_only_to_those_who_asked(client: Client, module: Path, notified: Any) -> None:
    await client.start(module.parent, options={"settings": CPU})
    write_kernel(module)
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    kernel = module.parent / "kernels" / "double_triton.py"
    await client.until(lambda: "@triton.jit" in kernel.read_text(), 90)
    assert not any(notified.values())


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("edited", [False, True])
async def test_a_kernel_that_is_there_is_not_replaced_but_proposed(
    client: Client, module: Path, notified: Any, edited: bool
) -> None:
    await client.start(module.parent, options={"review": True, "settings": CPU})
    kernel = write_kernel(module)
    if edited:
        kernel.write_text(kernel.read_text() + "# mine\n")
    before = kernel.read_text()
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    (proposal,) = await client.until(lambda: notified["kernelLsp/proposal"], 90)
    assert kernel.read_text() == before and BODY in before
    assert (proposal["file"], proposal["className"]) == (kernel.as_uri(), "Double")
    assert "@triton.jit" in proposal["text"] and proposal["why"] == "not timed"
    # Accepted: the session's verdict is about what is there now.
    kernel.write_text(proposal["text"])
    changes = [types.FileEvent(kernel.as_uri(), types.FileChangeType.Changed)]
    client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes))
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert client.messages == []
    # The same kernel again replaces nothing, so there is nothing to review.
    await client.execute("kernelLsp.generate", argument(uri))
    await client.until(lambda: any("generate-2" in m.message for m in client.log_messages), 90)
    assert len(notified["kernelLsp/proposal"]) == 1


@pytest.mark.parametrize("wanted", [True, pytest.param(False, marks=pytest.mark.slow)])
async def test_a_failure_says_what_to_do_before_its_details(
    client: Client, module: Path, notified: Any, wanted: bool
) -> None:
    """A client with buttons gets the code and the class, any other one a message."""
    module.write_text("import nothing_of_this_name\n" + MODULE)
    await client.start(module.parent, options={"failures": wanted, "settings": CPU})
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    failures = notified["kernelLsp/failure"]
    await client.until(lambda: [*failures, *client.messages], 100)
    assert len(failures) == wanted and len(client.messages) == (not wanted)
    message = failures[0]["message"] if wanted else client.messages[0].message
    assert "Fix the import, or choose the interpreter that has it" in message
    assert message.endswith("Details: ModuleNotFoundError: No module named 'nothing_of_this_name'")
    if wanted:
        told = (failures[0]["code"], failures[0]["uri"], failures[0]["className"], failures[0]["severity"])
        assert told == ("ImportFailed", uri, "Double", "error")


@pytest.mark.slow
async def test_somebody_elses_file_is_not_even_proposed_for(client: Client, module: Path, notified: Any) -> None:
    await client.start(module.parent, options={"review": True, "settings": CPU})
    kernel = module.parent / "kernels" / "double_triton.py"
    kernel.parent.mkdir()
    kernel.write_text("print('mine')\n")
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    written = kernel_file.find_kernel(module, "Double")
    await client.until(written.exists, 60)
    assert written.parent == kernel.parent and written != kernel
    assert kernel.read_text() == "print('mine')\n" and notified["kernelLsp/proposal"] == []


@pytest.mark.slow
async def test_devices_are_the_workers(client: Client, module: Path) -> None:
    await client.start(module.parent, options={"settings": {"interpreter": sys.executable}})
    uri = client.open(module)
    devices = [data(d) for d in await client.execute("kernelLsp.devices", {"uri": uri})]
    assert [d["device"] for d in devices] == [f"cuda:{i}" for i in range(len(devices))]
    assert len((await client.debug())["workerPids"]) == 1


async def test_each_folder_has_settings_of_its_own(client: Client, tmp_path: Path) -> None:
    uris = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "double.py").write_text(MODULE)
        client.set_configuration({"interpreter": f"/no/{name}"}, section="kernelLsp", scope_uri=folder.as_uri())
    await client.start(tmp_path / "one")
    added = types.WorkspaceFolder((tmp_path / "two").as_uri(), "two")
    event = types.WorkspaceFoldersChangeEvent(added=[added], removed=[])
    client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
    for name in ("one", "two"):
        uris.append(client.open(tmp_path / name / "double.py"))
    for name, uri in zip(("one", "two"), uris, strict=True):
        await client.execute("kernelLsp.generate", argument(uri))
        await client.until(lambda uri=uri: client.codes(uri) == ["cannot-validate"], 20)
        assert f"/no/{name}" in client.diagnostics[uri][0].message


async def test_a_command_waits_for_settings_that_are_on_their_way(client: Client, module: Path) -> None:
    del client.protocol.fm.features[types.WORKSPACE_CONFIGURATION]

    @client.feature(types.WORKSPACE_CONFIGURATION)
    async def answer_late(params: types.ConfigurationParams) -> list[dict[str, str]]:
        await asyncio.sleep(0.5)
        return [{"interpreter": "/no/late"} for _ in params.items]

    await client.start(module.parent)
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    await client.until(lambda: client.codes(uri) == ["cannot-validate"], 20)
    assert "/no/late" in client.diagnostics[uri][0].message


@pytest.mark.slow
async def test_a_client_that_never_sends_settings_is_served_all_the_same(client: Client, module: Path) -> None:
    del client.protocol.fm.features[types.WORKSPACE_CONFIGURATION]
    over = asyncio.Event()

    @client.feature(types.WORKSPACE_CONFIGURATION)
    async def never_answer(params: types.ConfigurationParams) -> None:
        await over.wait()

    await client.start(module.parent, options={"settings": {"interpreter": "/no/first"}})
    uri = client.open(module)
    await client.execute("kernelLsp.generate", argument(uri))
    try:
        await client.until(lambda: client.codes(uri) == ["cannot-validate"], 20)
        assert "/no/first" in client.diagnostics[uri][0].message
        began = time.monotonic()
        await client.execute("kernelLsp.generate", argument(uri))
        assert time.monotonic() - began < 4.0  # less than the wait, which is over for good
    finally:
        over.set()  # a question that is left unanswered would be an error of the test client's
        await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    "project, trusted, wins",
    [
        ("", True, "/selected"),
        pytest.param("/project", True, "/project", marks=pytest.mark.slow),
        pytest.param("", False, "", marks=pytest.mark.slow),
    ],
)
async def test_the_selected_interpreter_stands_in_where_nothing_names_one(
    client: Client, module: Path, project: str, trusted: bool, wins: str
) -> None:
    if project:
        (module.parent / "pyproject.toml").write_text(f'[tool.kernel-lsp]\ninterpreter = "{project}"\n')
    options = {"trusted": trusted, "settings": {"selectedInterpreter": "/selected"}}
    await client.start(module.parent, options=options)
    uri = client.open(module)
    if not trusted:
        with pytest.raises(Exception, match="not trusted"):
            await client.execute("kernelLsp.generate", argument(uri))
        return
    await client.execute("kernelLsp.generate", argument(uri))
    await client.until(lambda: client.codes(uri) == ["cannot-validate"], 20)
    assert wins in client.diagnostics[uri][0].message


async def test_an_interpreter_that_is_not_there_is_told_of_before_it_is_needed(client: Client, module: Path) -> None:
    await client.start(module.parent, options={"settings": {"interpreter": "/no/such/python"}})
    client.open(module)
    other = module.with_name("other.py")
    other.write_text(module.read_text())
    await client.until(lambda: client.messages)
    client.open(other)
    assert [message.message for message in client.messages] == [
        "The worker's interpreter could not be started. Set kernelLsp.interpreter to a Python that has torch and triton. "
        "Details: /no/such/python: No such file or directory"
    ]


@pytest.mark.slow
async def test_a_setting_that_is_taken_back_is_gone(client: Client, module: Path) -> None:
    client.set_configuration({"kernelFolder": "elsewhere"}, section="kernelLsp")
    await client.start(module.parent)
    write_kernel(module)
    uri = client.open(module)

    async def without() -> bool:
        return await client.lenses(uri) == ["Generate Triton kernel"] and client.codes(uri) == []

    await client.until(without)
    client.set_configuration({}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])


async def test_using_a_kernel_is_a_plain_edit(client: Client, module: Path) -> None:
    """An editor makes it at once: with an annotation that asks for confirmation, it would open a preview first."""
    module.write_text(MODULE + "\n\nmodel = Double()\n")
    await client.start(module.parent)
    write_kernel(module)
    uri = client.open(module)
    action = await client.until(lambda: offered(client, uri))
    (change,) = action.edit.document_changes
    assert action.edit.change_annotations is None
    assert [type(edit) for edit in change.edits] == [types.TextEdit, types.TextEdit]
    assert sorted(edit.new_text.strip().partition("  #")[0] for edit in change.edits) == [
        "double_triton.DoubleTriton",
        "from kernels import double_triton",
    ]


async def offered(client: Client, uri: str) -> Any:
    return (await client.actions(uri, 4, 8)).get("Use DoubleTriton in this file")
