"""What each request of the protocol does: which children it takes, in which order, and what is remembered."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from kernel_lsp import errors, schema
from kernel_lsp.confinement import entering, layers
from kernel_lsp.specimen import faults
from kernel_lsp.worker import environment, memory_use
from kernel_lsp.worker.children import Zygote

Emit = Callable[[str, Any], None]

#: methods that run on a device
_TIMED = ("validate", "tune", "compare", "baseline")
#: seconds for importing, exporting and synthesizing
SPECIMEN_SECONDS = 180.0
#: seconds for validating one candidate, where the request names none
VALIDATE_SECONDS = 60.0
#: seconds for finding out how a device's memory can be shared
LENDING_SECONDS = 60.0
#: what an unmarked process is not told of a request
_OF_THE_REFEREE = ("source", "sources", "specimen", "recorded")
#: how a process ends that crashed by itself, and was not killed for its memory or its time; and what CUDA says where one of its kernels did
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "device-side assert", "illegal memory access")
#: checks that are left out since the process crashed in them, before the validation itself counts as failed
MOST_CRASHES = 3
#: seconds for the compile report beside the interpreter
COMPILE_SECONDS = 60.0


class Desk:
    """Answers requests. Holds what is worth keeping between them: devices, specimens, the device's measured rates.

    ``unmarked``: the folder for the files of unmarked processes. ``group``: the folder of the cgroup for candidates, "" where
    there is none.
    """

    def __init__(self, zygotes: dict[str, Zygote], scratch: str, unmarked: str, group: str) -> None:
        self.zygotes = zygotes
        self.scratch = scratch
        self.unmarked = unmarked
        self.layers = layers.look(group)
        self.specimens: dict[str, dict[str, Any]] = {}
        self.rates: dict[str, dict[str, float]] = {}
        self.sharing: dict[str, str] = {}  # device → what its driver needs open (entering.SHARING)
        self.gpu = asyncio.Lock()  # one validate at a time: timings must not disturb each other
        self.devices = asyncio.get_running_loop().create_task(_find_devices())

    async def handle(self, method: str, params: dict[str, Any], emit: Emit) -> Any:
        """The result of one request; ``emit`` is called with its events.

        Raises:
            UserError: the method is unknown, packages are missing, or the method's own error.
        """
        if method == "hello":
            cuda = await asyncio.shield(self.devices)
            return environment.hello([*cuda, environment.interpreter_device()], self.layers)
        if method == "warm":
            await asyncio.gather(*(asyncio.shield(zygote.ready) for zygote in self.zygotes.values()))
            return {}
        if method not in ("introspect", "interface", "synthesize", "explain", "estimate", "slice", *_TIMED):
            raise errors.UserError(message=f"The worker knows no method {method!r}.")
        for problem in environment.problems():
            raise problem
        if method in _TIMED:
            device = await self._device(params.get("device") or "auto")
            async with self.gpu, memory_use.watched(device) as memory:
                result = await self._with_folder(method, {**params, "device": device}, emit)
            return {**result, "memory": memory}
        return await self._specimen(method, params, emit)

    async def _specimen(self, method: str, params: dict[str, Any], emit: Emit) -> Any:
        seconds = float(params.get("seconds") or SPECIMEN_SECONDS)
        given = {**params, "scratch": self.scratch}
        if method in ("synthesize", "estimate"):
            found = await self._gpu(params.get("device") or "auto")
            given["gpu"] = found or params.get("target")
        result = await self.zygotes["native"].run(method, given, emit, seconds)
        if method == "estimate":  # which may come of less than a specimen
            return result
        specimen = result if method == "introspect" else result["specimen"]
        self.specimens[_key(params)] = specimen
        return result

    async def _with_folder(self, method: str, params: dict[str, Any], emit: Emit) -> dict[str, Any]:
        try:
            folder = tempfile.mkdtemp(dir=self.scratch)
        except OSError as error:
            raise faults.no_space(error, tempfile.gettempdir()) or error from None
        try:
            return await self._on_device(method, {**params, "scratch": folder}, emit)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _on_device(self, method: str, params: dict[str, Any], emit: Emit) -> dict[str, Any]:
        device = params["device"]
        seconds = float(params.get("seconds") or VALIDATE_SECONDS)
        given = {**params, "seconds": seconds, "rates": self.rates.get(device), "layers": layers.to_json(self.layers)}
        if method == "baseline":
            # Sizes for the quota. None after a restart of the worker: then it has the memory to itself.
            given["specimen"] = self.specimens.get(_key(params))
            return await self.zygotes["native"].run("baseline", given, emit, seconds)  # type: ignore[no-any-return]
        finding = asyncio.create_task(self._find_sharing(device, given, emit))
        try:
            # Only a source of shapes to try, which eager then has to accept: a stale one does no harm.
            specimen = self.specimens.get(_key(params)) or await self._specimen("introspect", params, emit)
            given["sharing"] = await finding
        finally:
            finding.cancel()
            await asyncio.wait({finding}, timeout=5)
        given["specimen"] = _pinned(specimen) if params.get("pinned") else specimen
        given["converted"] = specimen.get("converted") or ""
        return {**await self._validated(method, given, emit), "specimen": specimen}

    async def _validated(self, method: str, given: dict[str, Any], emit: Emit) -> dict[str, Any]:
        device = given["device"]
        if device == "interpreter" and method != "compare":
            return await self._validate_without_gpu(given, emit)
        result = await self._validated_with_retry("native", method, given, emit, given["seconds"] + 30)
        self.rates[device] = result.pop("rates", None) or self.rates.get(device, {})
        return result  # type: ignore[no-any-return]

    async def _find_sharing(self, device: str, given: dict[str, Any], emit: Emit) -> str:
        """What the device's driver needs open to share memory with a confined process; tried out the first time."""
        if device == "interpreter":
            return entering.SHARING[0]

        if device not in self.sharing:
            try:
                found = await self.zygotes["native"].run("lending", given, emit, LENDING_SECONDS)
                self.sharing[device] = found["sharing"]
            except errors.UserError:
                return entering.SHARING[0]  # then tensors travel in messages
        return self.sharing[device]

    async def _validate_without_gpu(self, given: dict[str, Any], emit: Emit) -> Any:
        """The interpreter says whether it is right; beside it the compiler says what it becomes on a GPU."""
        compiling = asyncio.create_task(
            self.zygotes["native"].run("compile", given, lambda *_: None, min(given["seconds"], COMPILE_SECONDS))
        )
        try:
            result = await self._validated_with_retry("interpreter", "validate", given, emit, given["seconds"] + 15)
            verdict = result["verdict"]
            result.pop("rates", None)
            if verdict["status"] not in schema.CORRECT:
                return result
            emit("progress", {"stage": "compile", "message": "compiling for a GPU", "fraction": 0.9})
            try:
                report = await compiling
            except errors.WorkerTimedOut:
                seconds = min(given["seconds"], COMPILE_SECONDS)
                verdict["limits"].append(schema.NOT_COMPILED + schema.COMPILING_STOPPED.format(seconds=seconds))
                return result
            except errors.UserError as error:
                verdict["limits"].append(f"{schema.NOT_COMPILED}{error}")
                return result
            verdict["kernels"] = report["kernels"]
            verdict["limits"] += report["limits"]
            if report["error"]:
                verdict.update(status="compile-error", **report["error"])
            return result
        finally:
            compiling.cancel()
            await asyncio.wait({compiling}, timeout=5)

    async def _validated_with_retry(
        self, role: str, method: str, given: dict[str, Any], emit: Emit, seconds: float
    ) -> Any:
        """As ``_validated_once``; where the process crashes in a check, again without that one, at most ``MOST_CRASHES`` times.

        Some operators of torch crash for inputs that a check may have, as ``embedding_bag`` does for no bags, or stop a kernel
        by an assert, which ends the process's CUDA context. No candidate runs in that process.
        """
        check, crashed, began, asked = "", list[str](), time.monotonic(), given.get("seconds")

        def hear(name: str, data: Any) -> None:
            nonlocal check
            if name == "progress" and data["stage"] == "check":
                check = data["message"]
            emit(name, data)

        while True:
            try:
                took = time.monotonic() - began
                left = {"seconds": asked - took} if crashed and asked is not None else {}
                return await self._validated_once(
                    role, method, given | left | {"crashed_in": crashed}, hear, seconds - took
                )
            except (errors.WorkerDied, errors.InternalError) as error:
                said = str(error)
                if (
                    not check
                    or check in crashed
                    or len(crashed) == MOST_CRASHES
                    or not any(s in said for s in _CRASHES)
                ):
                    raise
                crashed.append(check)
                check = ""

    async def _validated_once(self, role: str, method: str, given: dict[str, Any], emit: Emit, seconds: float) -> Any:
        """The result of a task that validates, beside one that runs its candidate in unmarked processes when it is asked to."""
        ours, theirs = socket.socketpair()
        folder = tempfile.mkdtemp(dir=self.unmarked)
        alone = {name: value for name, value in given.items() if name not in _OF_THE_REFEREE}
        beside = asyncio.create_task(
            self.zygotes["unmarked"].run("unmarked", alone | {"folder": folder}, lambda *_: None, None, (theirs,))
        )
        try:
            return await self.zygotes[role].run(method, given, emit, seconds, (ours,))
        finally:
            beside.cancel()
            await asyncio.wait({beside}, timeout=6)
            shutil.rmtree(folder, ignore_errors=True)

    async def _gpu(self, wanted: str) -> str | None:
        """What the driver calls the device; None where it is no GPU."""
        with contextlib.suppress(errors.NoSuchDevice):  # which the validation says, with what was written
            device = await self._device(wanted)
            if device != "interpreter":
                return (await asyncio.shield(self.devices))[int(device.partition(":")[2])].name
        return None

    async def _device(self, wanted: str) -> str:
        """``cuda:N`` or ``interpreter``.

        Raises:
            NoSuchDevice: the worker does not see it.
        """
        if wanted == "interpreter":
            return wanted
        cuda = await asyncio.shield(self.devices)
        if wanted == "auto":
            return "cuda:0" if cuda else "interpreter"
        kind, _, index = wanted.partition(":")
        if kind == "cuda" and (index or "0").isdigit() and int(index or 0) < len(cuda):
            return f"cuda:{index or 0}"
        detail = f"it sees {len(cuda)} CUDA GPU{'' if len(cuda) == 1 else 's'}"
        interpreter = sys.executable
        raise errors.NoSuchDevice(device=wanted, interpreter=interpreter, detail=detail)


def _pinned(specimen: dict[str, Any]) -> dict[str, Any]:
    """The specimen of a candidate that stands for the module at the example's sizes only: no dimension is dynamic."""
    inputs = [{**spec, "dynamic": []} for spec in specimen["inputs"]]
    return {**specimen, "inputs": inputs, "dynamic": {}, "pinned": True, "unpinned": specimen["inputs"]}


def _key(params: dict[str, Any]) -> str:
    """What a specimen depends on, as far as the manager can tell."""
    try:
        modified = os.stat(params["path"]).st_mtime_ns
    except (OSError, KeyError):
        modified = 0
    about = [params.get(name) for name in ("path", "class_name", "fingerprint", "inputs", "example", "training")]
    return json.dumps([modified, *about], sort_keys=True)


async def _find_devices() -> list[schema.Device]:
    """The CUDA devices, asked of the driver in a program of its own, since drivers hang and crash; [] after 10 s."""
    startup = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "startup.py")
    program = (
        f"import runpy, json; m = runpy.run_path({startup!r}); m['register_package']();"
        "from kernel_lsp import schema; from kernel_lsp.worker import environment;"
        "print(json.dumps([schema.to_json(d) for d in environment.cuda_devices()]))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", program, stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), 10)
        return [schema.from_json(schema.Device, d) for d in json.loads(out or b"[]")]
    except (TimeoutError, ValueError):
        if process.returncode is None:
            process.kill()
        return []
