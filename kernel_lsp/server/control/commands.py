"""The commands. Each returns as soon as the settings are known; what it started is followed through progress, lenses and diagnostics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pygls.exceptions import JsonRpcException

from kernel_lsp import errors
from kernel_lsp.errors import UserError

from ..model.documents import Document
from ..session.class_states import class_states
from ..session.session import Session
from .debug_information import debug_information


class CommandRefused(JsonRpcException):
    """The answer to a command that cannot be done; its message is the user error's (LSP: RequestFailed)."""

    CODE = -32803


def register(session: Session) -> None:
    """Register a handler for each command; what they answer is JSON data.

    A command that is refused answers with an error of the protocol, whose message is the user error's.
    """
    command = session.connection.command

    @command("kernelLsp.generate")
    async def generate(*arguments: Any) -> str:
        return await _start(session, "generate", arguments)

    @command("kernelLsp.validate")
    async def validate(*arguments: Any) -> str:
        return await _start(session, "validate", arguments)

    @command("kernelLsp.restore")
    async def restore(*arguments: Any) -> str:
        from ..features.show_change import comparison

        argument = _argument(arguments)
        await session.settings_arrive()
        try:
            document, name = _resolve(session, argument)
            body = (await comparison(session, document, name)).body
            return session.submit("restore", document, name, asked=True, overwrite=argument.get("overwrite"), body=body)
        except UserError as error:
            raise _refused(error) from None

    @command("kernelLsp.showChange")
    async def show_change(*arguments: Any) -> None:
        from ..features.show_change import show_change

        try:
            await show_change(session, *_resolve(session, _argument(arguments)))
        except UserError as error:
            raise _refused(error) from None

    @command("kernelLsp.cancel")
    def cancel(*arguments: Any) -> str | None:
        cancelled = _cancel(session, _argument(arguments))
        session.interrupt(for_good=True)
        return cancelled

    @command("kernelLsp.showReport")
    async def show(*arguments: Any) -> str | None:
        from ..features.report import show_report  # what it imports is rarely needed

        try:
            document, name = _resolve(session, _argument(arguments))
            return await show_report(session, document, name)
        except UserError as error:
            raise _refused(error) from None

    @command("kernelLsp.classes")
    def classes(*arguments: Any) -> list[dict[str, Any]]:
        document = session.documents.get(str(_argument(arguments).get("uri", "")))
        return [] if document is None else _classes(session, document)

    @command("kernelLsp.devices")
    async def devices(*arguments: Any) -> list[dict[str, Any]]:
        document = session.documents.get(str(_argument(arguments).get("uri", "")))
        await session.settings_arrive()
        try:
            return await _devices(session, document.path if document is not None else Path.cwd() / "file.py")
        except UserError as error:
            raise _refused(error) from None

    @command("kernelLsp.pause")
    def pause(*arguments: Any) -> None:
        session.pause()

    @command("kernelLsp.resume")
    def resume(*arguments: Any) -> None:
        session.resume()

    @command("kernelLsp.debugInformation")
    def debug(*arguments: Any) -> dict[str, Any]:
        return debug_information(session)


async def _start(session: Session, kind: str, arguments: tuple[Any, ...]) -> str:
    argument = _argument(arguments)
    await session.settings_arrive()  # they name the interpreter
    try:
        document, name = _resolve(session, argument)
        return session.submit(kind, document, name, asked=True, overwrite=argument.get("overwrite"))
    except UserError as error:
        raise _refused(error) from None


def _refused(error: UserError) -> CommandRefused:
    """The answer to a command; a client shows its message in little room."""
    refused = CommandRefused(error.detail_last())
    refused.data = error.to_json()
    return refused


def _argument(arguments: tuple[Any, ...]) -> dict[str, Any]:
    argument = arguments[0] if arguments else {}
    if not isinstance(argument, dict):
        argument = getattr(argument, "__dict__", None) or getattr(argument, "_asdict", dict)()
    return dict(argument)


def _resolve(session: Session, argument: dict[str, Any]) -> tuple[Document, str]:
    """The open document and the class that a command means. A path or code is never taken from a client.

    Raises:
        ClassNotFound: the document is not open, or has no such class.
        ClassDefinedTwice: it has two of that name.
    """
    uri, name = str(argument.get("uri", "")), str(argument.get("className", ""))
    document = session.documents.get(uri)
    if document is None:
        raise errors.ClassNotFound(class_name=name, path=f"{uri} (which is not open)")
    if document.is_kernel_file:
        return document, name
    found = [c for c in session.documents.classes(document) if c.name == name]
    if not found:
        raise errors.ClassNotFound(class_name=name, path=str(document.path))
    if found[0].duplicate:
        line = found[-1].name_range.start.line + 1
        raise errors.ClassDefinedTwice(path=str(document.path), line=line, class_name=name)
    return document, name


def _classes(session: Session, document: Document) -> list[dict[str, Any]]:
    """The module classes of a document, for a client that asks which one a command is about."""
    if document.is_kernel_file:
        return _class_of_kernel_file(session, document)
    found = []
    for c, s in class_states(session, document):
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


def _class_of_kernel_file(session: Session, document: Document) -> list[dict[str, Any]]:
    from kernel_lsp import kernel_file

    try:
        name = kernel_file.parse(document.text, document.path).class_name
        record = session.running(document.source_of_kernel(), name)
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


async def _devices(session: Session, path: Path) -> list[dict[str, Any]]:
    """The CUDA devices that the worker for a file sees.

    Raises:
        UntrustedWorkspace: nothing may be run.
        UserError: what starting the worker raises.
    """
    if not session.trusted:
        raise errors.UntrustedWorkspace()
    jobs = session.start_jobs()
    found = (await jobs.hello(path))["devices"]
    if session.paused:
        jobs.rest()
    cuda = [device for device in found if device["kind"] == "cuda"]
    return [{"device": f"cuda:{i}", "name": d["name"], "capability": d["capability"]} for i, d in enumerate(cuda)]


def _cancel(session: Session, argument: dict[str, Any]) -> str | None:
    """Cancel by job id, or by document and class; the id of what was cancelled, None if nothing was running."""
    job_id = argument.get("jobId")
    if job_id is None:
        document = session.documents.get(str(argument.get("uri", "")))
        record = session.running(document.path, str(argument.get("className", ""))) if document is not None else None
        job_id = record.job.id if record is not None and record.job is not None else None
    if job_id is None or session.jobs is None or not session.jobs.cancel(str(job_id)):
        return None
    return str(job_id)
