"""Each trap of the library underneath, with the shield that keeps users out of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsprotocol import types
from pygls.exceptions import FeatureNotificationError

from kernel_lsp.server.control.language_server import Server
from tests.server.lsp_client import MODULE, SERVER

SLEEPER = "import time\ntime.sleep(60)\n" + MODULE


@pytest.fixture
def sleeper(module: Path) -> Path:
    """A module whose import takes a minute: a job on it runs until it is stopped."""
    module.write_text(SLEEPER)
    return module


def argument(uri: str) -> dict[str, Any]:
    return {"uri": uri, "className": "Double", "version": 1}


async def running(client: Any, uri: str) -> str:
    """Start a job and wait until the user's module is being imported."""
    job = await client.execute("kernelLsp.generate", argument(uri))
    reports = lambda: [p for p in client.progress_reports.get(job, []) if p.kind == "report"]  # noqa: E731
    await client.until(lambda: any(p.percentage >= 10 for p in reports()), 60)
    return str(job)


async def test_cancel_stops_the_work(client: Any, sleeper: Path) -> None:
    """Cancelling an executeCommand request would answer and leave the work running."""
    await client.start(sleeper.parent)
    uri = client.open(sleeper)
    for how in ("job id", "class", "progress"):
        job = await running(client, uri)
        began = time.monotonic()
        if how == "job id":
            assert await client.execute("kernelLsp.cancel", {"jobId": job}) == job
        elif how == "class":
            assert await client.execute("kernelLsp.cancel", argument(uri)) == job
        else:
            client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(job))
        await client.until(lambda: _idle(client), 5)
        assert time.monotonic() - began < 1.5
        assert client.progress_reports[job][-1].kind == "end"
        assert await client.execute("kernelLsp.cancel", {"jobId": job}) is None
    assert client.messages == []
    assert (await client.debug())["progressTokens"] == 0  # pygls would keep the tokens


async def _idle(client: Any) -> bool:
    return (await client.debug())["jobs"] == []


async def test_answers_stay_quick_and_exit_too_while_a_job_runs(client: Any, sleeper: Path) -> None:
    """Work in the library's thread pool would hold up reading and the exit."""
    await client.start(sleeper.parent)
    uri = client.open(sleeper)
    await running(client, uri)
    assert (await client.lenses(uri))[0].startswith("… ")
    times = []
    for _ in range(20):
        began = time.monotonic()
        await client.hover(uri, 6, 8)
        times.append(time.monotonic() - began)
    assert sorted(times)[10] < 0.1
    server = psutil.Process((await client.debug())["pid"])
    family = [server, *server.children(recursive=True)]
    assert len(family) > 1
    began = time.monotonic()
    await client.shutdown_session()
    assert time.monotonic() - began < 2.0
    _, alive = psutil.wait_procs(family, timeout=1)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]  # a zombie waits for init alone
    assert client._server.returncode == 0


async def test_handled_notifications_leave_nothing_behind(client: Any, module: Path) -> None:
    await client.start(module.parent)
    uri = client.open(module)
    for version in range(2, 302):
        client.change(uri, version, "#", types.Range(types.Position(0, 0), types.Position(0, 0)))
    assert (await client.debug())["pendingFutures"] < 5


async def test_a_client_that_never_answers_costs_nothing_for_long() -> None:
    server = Server()
    server.protocol.set_writer(_Sink())  # type: ignore[arg-type]
    server.ask("workspace/codeLens/refresh", seconds=0.05)
    server.ask_once("workspace/codeLens/refresh")
    server.ask_once("workspace/codeLens/refresh")
    assert len(server.protocol._request_futures) == 2  # the third waits for the second
    await asyncio.sleep(0.1)
    assert len(server.protocol._request_futures) == 1


class _Sink:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


async def test_errors_in_notifications_are_no_toasts(
    client: Any, module: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    sink = _Sink()
    server.protocol.set_writer(sink)  # type: ignore[arg-type]
    server._report_server_error(ValueError("a bug"), FeatureNotificationError)
    assert sink.data == b"" and "a bug" in caplog.text

    await client.start(module.parent)
    uri = client.open(module)
    client.protocol._send_data({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"wrong": 1}})
    client.protocol._send_data({"jsonrpc": "2.0", "method": "no/such/thing", "params": {}})
    client.protocol._send_data({"jsonrpc": "2.0", "method": "kernelLsp/unknown"})
    assert await client.lenses(uri) == ["Generate Triton kernel"]
    assert client.messages == []


@pytest.mark.slow
async def test_a_client_with_no_capabilities_is_asked_nothing(client: Any, module: Path) -> None:
    """No progress, no refresh, no configuration: it never said that it knows them. And code actions are commands."""
    module.write_text("import nothing_of_that_name\n" + MODULE)
    await client.start(module.parent, types.ClientCapabilities())
    uri = client.open(module)
    actions = await client.actions(uri, 5, 8)
    command = actions["Generate Triton kernel for Double"]
    assert isinstance(command, types.Command)
    await client.execute(command.command, *command.arguments)
    await client.until(lambda: client.codes(uri) == ["cannot-validate"], 60)
    assert client.progress_reports == {} and client.requests == []
    assert client.diagnostics[uri][0].range.start.line == 0  # the line of the import that fails
    assert "nothing_of_that_name" in client.diagnostics[uri][0].message
    (toast,) = client.messages  # the user asked, and it failed
    assert toast.type == types.MessageType.Error
    client.change(uri, 2, MODULE)
    await client.until(lambda: client.codes(uri) == [])


async def test_message_bodies_stay_out_of_the_log(module: Path) -> None:
    secret = "a_secret_in_the_source"
    messages = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": {"uri": module.as_uri(), "languageId": "python", "version": 1, "text": f"{secret} = 1\n"}}},
        {"id": 2, "method": "textDocument/codeLens", "params": {"textDocument": {"uri": module.as_uri()}}},
        {"id": 3, "method": "shutdown"},
        {"method": "exit"},
    ]  # fmt: skip
    done = subprocess.run([*SERVER, "--log-level=debug"], input=frames(messages), capture_output=True, timeout=30)
    assert done.returncode == 0
    assert secret.encode() not in done.stderr
    assert done.stdout.count(b"Content-Length") >= 3


def frames(messages: list[dict[str, Any]]) -> bytes:
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
    return b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)


INITIALIZE = {"id": 1, "method": "initialize", "params": {"rootUri": None, "capabilities": {}}}


@pytest.mark.skipif(os.name != "posix", reason="processes are watched on POSIX only")
def test_ends_when_the_client_dies_and_leaves_the_pipe_open(tmp_path: Path) -> None:
    """The launcher is the client: it is killed, while the test keeps the server's input open."""
    launcher_code = f"import subprocess, time; p = subprocess.Popen({SERVER!r}); print(p.pid, flush=True, file=open({str(tmp_path / 'pid')!r}, 'w')); time.sleep(60)"
    launcher = subprocess.Popen([sys.executable, "-c", launcher_code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert launcher.stdin is not None and launcher.stdout is not None
    params = {**INITIALIZE["params"], "processId": launcher.pid}  # type: ignore[dict-item]
    launcher.stdin.write(frames([{**INITIALIZE, "params": params}]))
    launcher.stdin.flush()
    assert launcher.stdout.readline().startswith(b"Content-Length")
    server = psutil.Process(int((tmp_path / "pid").read_text()))
    time.sleep(1.2)  # it has looked once and found its client alive
    assert server.is_running()
    launcher.send_signal(signal.SIGKILL)
    launcher.wait()
    deadline = time.monotonic() + 5
    while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the server outlived its client"
        time.sleep(0.05)
    launcher.stdin.close()
    launcher.stdout.close()


def test_a_client_process_that_is_not_ours_is_not_watched(tmp_path: Path) -> None:
    """A client in a container sends a number that means nothing here."""
    params = {**INITIALIZE["params"], "processId": 2**22 + 1}  # type: ignore[dict-item]
    server = subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(frames([{**INITIALIZE, "params": params}]))
    server.stdin.flush()
    assert server.stdout.readline().startswith(b"Content-Length")
    time.sleep(1.5)
    assert server.poll() is None
    server.stdin.close()  # end of input: the client is gone
    assert server.wait(5) == 1
    server.stdout.close()


def test_a_print_does_not_end_up_between_messages(tmp_path: Path) -> None:
    code = "import sys; from kernel_lsp.server import main; from kernel_lsp.server.control import transport; transport.Server.on_open = lambda *a: print('stray', flush=True); sys.exit(main([]))"
    item = {"uri": "file:///a.py", "languageId": "python", "version": 1, "text": ""}
    messages = [
        INITIALIZE,
        {"method": "textDocument/didOpen", "params": {"textDocument": item}},
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    ]
    done = subprocess.run([sys.executable, "-c", code], input=frames(messages), capture_output=True, timeout=30)
    assert b"stray" not in done.stdout and b"stray" in done.stderr
