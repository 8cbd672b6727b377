"""The worker's loop: one thread, requests in, answers out; every piece of work is a child of a zygote.

Protocol: docs/architecture.md. The manager imports the standard library alone and never touches torch or CUDA.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from typing import Any

from kernel_lsp import errors
from kernel_lsp.confinement import cgroup
from kernel_lsp.worker import children, requests, zygote


def run(requests_fd: int, answers_fd: int) -> None:
    """Serve until standard input ends; then end, and the keeper ends every child, however this process ends."""
    scratch = tempfile.mkdtemp(prefix="kernel-lsp-")
    group = cgroup.make(os.path.basename(scratch))
    unmarked = tempfile.mkdtemp()  # named as any program's own: a candidate is not to see ours (unmarked_process.py)
    sockets = zygote.start([requests_fd, answers_fd], [scratch, unmarked], group)
    try:
        asyncio.run(_Manager(answers_fd, sockets, [scratch, unmarked], group).serve(requests_fd))
    except KeyboardInterrupt:
        pass
    finally:
        _remove([scratch, unmarked])
    os._exit(0)  # not waiting for anything: the keeper sees it and ends the children


def _remove(folders: list[str]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


class _Manager:
    def __init__(self, answers_fd: int, sockets: dict[str, Any], folders: list[str], group: str) -> None:
        self.answers_fd = answers_fd
        self.sockets = sockets
        self.folders = folders
        self.group = group
        self.running: dict[Any, asyncio.Task[None]] = {}

    async def serve(self, requests_fd: int) -> None:
        zygotes = {role: children.Zygote(role, control, self._die) for role, control in self.sockets.items()}
        self.desk = requests.Desk(zygotes, self.folders[0], self.folders[1], self.group)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended = ended
        children.read_lines(requests_fd, self._line, self._end)
        await ended
        for task in self.running.values():
            task.cancel()
        if self.running:  # the graceful part: children are killed and their folders removed
            await asyncio.wait(self.running.values(), timeout=1)

    def _die(self) -> None:
        """End at once, which the server sees as a dead worker."""
        _remove(self.folders)
        cgroup.remove(self.group)
        os._exit(70)

    def _line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            method = message["method"]
        except (ValueError, KeyError, TypeError):
            print(f"kernel-lsp worker: not a request: {line[:200]!r}", file=sys.stderr, flush=True)
            return
        params = message.get("params") or {}
        if method == "shutdown":
            self._end()
        elif method == "cancel":
            task = self.running.get(params.get("id"))
            if task:
                task.cancel()
        else:
            ident = message.get("id")
            task = asyncio.get_running_loop().create_task(self._answer(ident, method, params))
            self.running[ident] = task
            task.add_done_callback(lambda _: self.running.pop(ident, None))

    async def _answer(self, ident: Any, method: str, params: dict[str, Any]) -> None:
        def emit(event: str, data: Any) -> None:
            self._send({"id": ident, "event": event, "data": data})

        try:
            self._send({"id": ident, "result": await self.desk.handle(method, params, emit)})
        except errors.UserError as error:
            self._send({"id": ident, "error": error.to_json()})
        except asyncio.CancelledError:
            self._send({"id": ident, "error": errors.Cancelled().to_json()})
        except Exception as error:
            import traceback

            traceback.print_exc()
            detail = f"{type(error).__name__}: {error}"
            self._send({"id": ident, "error": errors.InternalError(detail=detail).to_json()})

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            while data:
                data = data[os.write(self.answers_fd, data) :]
        except OSError:
            self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
