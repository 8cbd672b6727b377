"""Where a kernel of the corpus runs: a home, a project, files that are none of its business, sockets that listen.

Everything is made for the test. ``harm`` looks at all of it afterwards, whatever the verdict says.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import socket
import time
import uuid
from pathlib import Path
from typing import Any

from kernel_lsp.confinement import layers
from tests.worker.worker_client import Client, WorkerError

#: folders of a home that compilers and drivers write to
_CACHES = (".triton", ".cache", ".nv")
_PYPROJECT = "[project]\nname = 'scene'\n"


class Workplace:
    """One worker process with a home folder and listening sockets of its own; started again when it has died.

    ``without``: layers of confinement that are taken for missing.
    """

    def __init__(self, folder: Path, without: str = "") -> None:
        self.without = without
        self.home = folder / "home"
        self.secret = f"secret-{uuid.uuid4().hex}"
        self.sockets = [_listening(socket.SOCK_STREAM), _listening(socket.SOCK_DGRAM)]
        self.client: Client | None = None
        self.furnish()

    def furnish(self) -> None:
        """The home as it was at first."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        (self.home / ".profile").write_text("# untouched\n")
        (self.home / "notes.txt").write_text("untouched\n")

    def worker(self) -> Client:
        if self.client is None or self.client.process.poll() is not None:
            given = {"HOME": str(self.home), "SCENE_PASSWORD": self.secret, layers.WITHOUT: self.without}
            self.client = Client(env={**os.environ, **given})
        return self.client

    def abandon(self, only_if_stopped: bool = False) -> bool:
        """End the worker, which takes its children with it; whether that was done. The next question starts another."""
        if self.client is None or (only_if_stopped and not _stopped_below(self.client.process.pid)):
            return False
        self.client.process.kill()
        self.client.process.wait()
        self.client = None
        return True

    def ports(self) -> list[int]:
        return [one.getsockname()[1] for one in self.sockets]

    def heard(self) -> list[str]:
        """What arrived at a socket since the last question."""
        found = []
        for one, kind in zip(self.sockets, ("TCP", "UDP"), strict=True):
            with contextlib.suppress(BlockingIOError):
                while True:
                    if kind == "TCP":
                        one.accept()[0].close()
                    else:
                        one.recv(65536)
                    found.append(f"something was sent over {kind}")
        return found

    def close(self) -> None:
        if self.client is not None:
            self.client.close()
        for one in self.sockets:
            one.close()


def _stopped_below(top: int) -> bool:
    """Whether a descendant of process ``top`` is stopped."""
    parents, stopped = {}, set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            state, parent, *_ = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            parents[int(name)] = int(parent)
            if state in "tT":
                stopped.add(int(name))
    for pid in stopped:
        while pid in parents and pid != top:
            pid = parents[pid]
        if pid == top:
            return True
    return False


def _listening(kind: int) -> socket.socket:
    one = socket.socket(socket.AF_INET, kind)
    one.bind(("127.0.0.1", 0))
    if kind == socket.SOCK_STREAM:
        one.listen(8)
    one.setblocking(False)
    return one


class Scene:
    """One run of one file: the user's project, and a folder that is none of the kernel's business."""

    def __init__(self, workplace: Workplace, folder: Path, module: str) -> None:
        self.workplace = workplace
        self.project, self.outside = folder / "project", folder / "outside"
        self.token = f"planted-{uuid.uuid4().hex[:12]}"
        for one in (self.project, self.outside):
            one.mkdir()
        self.source = self.project / "module.py"
        self.source.write_text("import torch\nfrom torch import nn\n" + module)
        (self.project / "pyproject.toml").write_text(_PYPROJECT)
        (self.outside / "keep.txt").write_text("untouched\n")
        (self.outside / "secret.txt").write_text(self.workplace.secret)
        self.before = self._files()

    def placed(self, text: str) -> str:
        """``text`` with the places of this scene in it."""
        tcp, udp = self.workplace.ports()
        places = {
            "@home@": self.workplace.home,
            "@project@": self.project,
            "@outside@": self.outside,
            "@token@": self.token,
            "@tcp@": tcp,
            "@udp@": udp,
        }
        for name, value in places.items():
            text = text.replace(name, str(value))
        return text

    def validate(self, class_name: str, kernel: str, **how: Any) -> tuple[str, dict[str, Any]]:
        """The verdict's status, or the code of the error that came instead of it; and the whole answer."""
        source = f"import torch, triton, triton.language as tl\nfrom module import {class_name}\n" + self.placed(kernel)
        worker = self.workplace.worker()
        try:
            given = {"path": str(self.source), "class_name": class_name, "source": source, **how}
            result = worker.call("validate", timeout=how["seconds"] + 25, **given)
        except WorkerError as error:
            return error.code, {"error": error.message}
        except AssertionError as error:  # the worker itself has ended
            return "worker ended", {"error": str(error)}
        except queue.Empty:
            self.workplace.abandon()
            return "no answer", {"error": "the worker gave no answer"}
        return result["verdict"]["status"], result

    def harm(self, answer: Any) -> list[str]:
        """A sentence for each harm that was done. Puts the home in order, and ends what was left running."""
        found = [f"it left process {pid} running" for pid in self._left_running()]
        if self.workplace.abandon(only_if_stopped=True):
            found.append("it stopped a process of the worker")
        after = self._files()
        for path in sorted(self.before.keys() | after.keys()):
            if self.before.get(path) != after.get(path):
                what = (
                    "changed" if path in self.before and path in after else "deleted" if path in self.before else "made"
                )
                found.append(f"{path} was {what}")
        found += self.workplace.heard()
        if self.workplace.secret in json.dumps(answer):
            found.append("a secret came out with the answer")
        if any(one.startswith(str(self.workplace.home)) for one in found):
            self.workplace.furnish()
        return found

    def _files(self) -> dict[str, tuple[bytes, int]]:
        """Contents and mode of every file of the home, the project and outside; of caches only what has the token's name."""
        found = {}
        for top in (self.workplace.home, self.project, self.outside):
            for path in top.rglob("*"):
                inner = path.relative_to(top).parts
                cached = "__pycache__" in inner or inner[0] in _CACHES
                if not path.is_file() or (cached and self.token not in path.name):
                    continue
                found[str(path)] = (path.read_bytes(), path.stat().st_mode)
        return found

    def _left_running(self) -> list[int]:
        """Processes that still work for this scene, once they had time to end; they are ended."""
        until = time.monotonic() + 1
        while (left := self._at_work()) and time.monotonic() < until:
            time.sleep(0.05)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return left

    def _at_work(self) -> list[int]:
        """Processes whose command line has the scene's token, or that stand in its folder outside."""
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{name}/cmdline").read_bytes().decode("utf-8", "replace")
                if self.token in words or os.readlink(f"/proc/{name}/cwd") == str(self.outside):
                    found.append(int(name))
        return found
