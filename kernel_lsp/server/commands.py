"""The commands. Each returns as soon as the settings are known; what it started is followed through progress, lenses and diagnostics."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pygls.exceptions import JsonRpcException

from kernel_lsp import __version__, errors, schema
from kernel_lsp.errors import UserError

from . import background
from .documents import Document
from .standing import standings
from .state import Record, State

_VERBS = {"generate": "Generating", "validate": "Validating", "restore": "Restoring the faster"}


class CommandRefused(JsonRpcException):
    """The answer to a command that cannot be done; its message is the user error's (LSP: RequestFailed)."""

    CODE = -32803


def register(state: State) -> None:
    command = state.server.command

    @command("kernelLsp.generate")
    async def generate(*arguments: Any) -> str:
        return await _start(state, "generate", arguments)

    @command("kernelLsp.validate")
    async def validate(*arguments: Any) -> str:
        return await _start(state, "validate", arguments)

    @command("kernelLsp.restore")
    async def restore(*arguments: Any) -> str:
        from .regressed import comparison

        argument = _argument(arguments)
        await state.settings_arrive()
        try:
            document, name = _resolve(state, argument)
            body = (await comparison(state, document, name)).body
            return submit(state, "restore", document, name, asked=True, overwrite=argument.get("overwrite"), body=body)
        except UserError as error:
            raise _refused(error) from None

    @command("kernelLsp.showChange")
    async def show_change(*arguments: Any) -> None:
        from .regressed import show_change

        try:
            await show_change(state, *_resolve(state, _argument(arguments)))
        except UserError as error:
            raise _refused(error) from None

    @command("kernelLsp.cancel")
    def cancel(*arguments: Any) -> str | None:
        cancelled = _cancel(state, _argument(arguments))
        state.follow_up.interrupt(for_good=True)
        return cancelled

    @command("kernelLsp.showReport")
    async def show(*arguments: Any) -> str | None:
        from .report import show_report  # what it imports is rarely needed

        try:
            document, name = _resolve(state, _argument(arguments))
            return await show_report(state, document, name)
        except UserError as error:
            raise _refused(error) from None

    @command("kernelLsp.classes")
    def classes(*arguments: Any) -> list[dict[str, Any]]:
        document = state.documents.get(str(_argument(arguments).get("uri", "")))
        return [] if document is None else _classes(state, document)

    @command("kernelLsp.devices")
    async def devices(*arguments: Any) -> list[dict[str, Any]]:
        document = state.documents.get(str(_argument(arguments).get("uri", "")))
        await state.settings_arrive()
        try:
            return await _devices(state, document.path if document is not None else Path.cwd() / "file.py")
        except UserError as error:
            raise _refused(error) from None

    @command("kernelLsp.pause")
    def pause(*arguments: Any) -> None:
        background.pause(state)

    @command("kernelLsp.resume")
    def resume(*arguments: Any) -> None:
        background.resume(state)

    @command("kernelLsp.debugInformation")
    def debug(*arguments: Any) -> dict[str, Any]:
        return debug_information(state)


async def _start(state: State, kind: str, arguments: tuple[Any, ...]) -> str:
    argument = _argument(arguments)
    await state.settings_arrive()  # they name the interpreter
    try:
        document, name = _resolve(state, argument)
        return submit(state, kind, document, name, asked=True, overwrite=argument.get("overwrite"))
    except UserError as error:
        raise _refused(error) from None


def _refused(error: UserError) -> CommandRefused:
    refused = CommandRefused(str(error))
    refused.data = error.to_json()
    return refused


def _argument(arguments: tuple[Any, ...]) -> dict[str, Any]:
    argument = arguments[0] if arguments else {}
    if not isinstance(argument, dict):
        argument = getattr(argument, "__dict__", None) or getattr(argument, "_asdict", dict)()
    return dict(argument)


def _resolve(state: State, argument: dict[str, Any]) -> tuple[Document, str]:
    """The open document and the class that a command means. A path or code is never taken from a client.

    Raises ClassNotFound, ClassDefinedTwice.
    """
    uri, name = str(argument.get("uri", "")), str(argument.get("className", ""))
    document = state.documents.get(uri)
    if document is None:
        raise errors.ClassNotFound(class_name=name, path=f"{uri} (which is not open)")
    if document.is_kernel_file:
        return document, name
    found = [c for c in state.documents.classes(document) if c.name == name]
    if not found:
        raise errors.ClassNotFound(class_name=name, path=str(document.path))
    if found[0].duplicate:
        line = found[-1].name_range.start.line + 1
        raise errors.ClassDefinedTwice(path=str(document.path), line=line, class_name=name)
    return document, name


def submit(
    state: State,
    kind: Any,
    document: Document,
    class_name: str,
    asked: bool,
    overwrite: bool | None = None,
    body: str = "",
) -> str:
    """Put a job in the queue and return its id. ``body``: of a kernel to restore, its hash.

    Raises UntrustedWorkspace; SourceMissing and NotAKernelFile for a kernel file.
    """
    if not state.trusted:
        raise errors.UntrustedWorkspace()
    path, kernel = document.path, None
    if document.is_kernel_file:
        path, kernel = _source_of(document), document.path
    jobs = state.start_jobs()
    state.follow_up.interrupt()
    target = schema.Target(document.uri, class_name, document.version)
    record = Record(asked=asked, text=document.text)
    if kernel is None:
        record.fingerprint = state.documents.fingerprint(document, class_name)
    review = state.review and kind != "validate" and not overwrite
    record.job = jobs.submit(
        kind, target, path, document.text, kernel=kernel, overwrite=overwrite, review=review, body=body
    )
    state.records[(path, class_name)] = record
    state.server.job_progress.begin(record.job.id, _title(kind, class_name))
    state.server.status_reports.soon()
    state.server.refresher.soon(0.0)
    return record.job.id


def _classes(state: State, document: Document) -> list[dict[str, Any]]:
    """The module classes of a document, for a client that asks which one a command is about."""
    if document.is_kernel_file:
        return _class_of_kernel_file(state, document)
    found = []
    for c, s in standings(state, document):
        job = s.running.job if s.running is not None else None
        found.append(
            {
                "className": c.name,
                "range": document.wire_range(c.whole_range),
                "kernel": s.kernel_path.as_uri() if s.kernel_path is not None else None,
                "running": job.id if job is not None else None,
            }
        )
    return found


def _class_of_kernel_file(state: State, document: Document) -> list[dict[str, Any]]:
    from kernel_lsp import kernel_file

    try:
        name = kernel_file.parse(document.text, document.path).class_name
        record = state.running(_source_of(document), name)
    except UserError:
        return []
    end = {"line": document.source.text.line_count, "character": 0}
    job = record.job if record is not None else None
    return [
        {
            "className": name,
            "range": {"start": {"line": 0, "character": 0}, "end": end},
            "kernel": document.uri,
            "running": job.id if job is not None else None,
        }
    ]


async def _devices(state: State, path: Path) -> list[dict[str, Any]]:
    """The CUDA devices that the worker for a file sees. Raises UntrustedWorkspace, or what starting the worker raises."""
    if not state.trusted:
        raise errors.UntrustedWorkspace()
    jobs = state.start_jobs()
    found = (await jobs.hello(path))["devices"]
    if state.paused:
        jobs.rest()
    cuda = [device for device in found if device["kind"] == "cuda"]
    return [{"device": f"cuda:{i}", "name": d["name"], "capability": d["capability"]} for i, d in enumerate(cuda)]


def _title(kind: str, class_name: str) -> str:
    return f"{_VERBS[kind]} Triton kernel for {class_name}"


def _source_of(document: Document) -> Path:
    from kernel_lsp import kernel_file

    return kernel_file.find_source(document.path, kernel_file.parse(document.text, document.path))


def _cancel(state: State, argument: dict[str, Any]) -> str | None:
    """Cancel by job id, or by document and class; the id of what was cancelled, None if nothing was running."""
    job_id = argument.get("jobId")
    if job_id is None:
        document = state.documents.get(str(argument.get("uri", "")))
        record = state.running(document.path, str(argument.get("className", ""))) if document is not None else None
        job_id = record.job.id if record is not None and record.job is not None else None
    if job_id is None or state.jobs is None or not state.jobs.cancel(str(job_id)):
        return None
    return str(job_id)


def debug_information(state: State) -> dict[str, Any]:
    """What a bug report needs, and what tests look at: nothing of the user's code."""
    protocol = state.server.protocol
    heavy = ("torch", "triton", "numpy", "transformers", "rich")
    return {
        "version": __version__,
        "python": sys.version,
        "pid": os.getpid(),
        "workerPids": state.jobs.worker_pids() if state.jobs is not None else [],
        "modelHostPids": state.jobs.model_host_pids() if state.jobs is not None else [],
        "trusted": state.trusted,
        "paused": state.paused,
        "watching": state.server.rounds.how,
        "documents": sum(1 for _ in state.documents),
        "jobs": [job.id for job in state.jobs.active()] if state.jobs is not None else [],
        "pendingFutures": len(protocol._request_futures),
        "progressTokens": len(state.server.job_progress) + len(protocol.progress.tokens),
        "heavyModules": [name for name in heavy if name in sys.modules],
        "client": {name: getattr(state.client, name) for name in state.client.__dataclass_fields__},
    }
