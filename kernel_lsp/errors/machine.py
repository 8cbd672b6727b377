"""The machine: the worker's interpreter and its packages, devices, memory, temporary files."""

from __future__ import annotations

from typing import Any

from .base import UserError


class PackageMissing(UserError):
    """The worker's interpreter has no torch, triton or numpy; ``command``: what installs it there."""

    template = "{interpreter} has no {package}. Install it there ({command}), or choose another interpreter (kernelLsp.interpreter)."


class PackageTooOld(UserError):
    """Python or a package of the worker's interpreter is older than the oldest that is supported, ``needed``."""

    template = "{interpreter} has {package} {version}; kernel-lsp needs {needed}. Upgrade it there ({command}), or choose another interpreter (kernelLsp.interpreter)."


class PackageBroken(UserError):
    """A package is installed, and importing it raises."""

    template = "{interpreter} cannot import {package}: {detail}. Reinstall it there ({command}), or choose another interpreter (kernelLsp.interpreter)."


class NoSuchDevice(UserError):
    """The device of a setting or option is not among those that the interpreter, or the cluster, sees."""

    template = "There is no device {device} for {interpreter}: {detail}. Set kernelLsp.device to auto or interpreter, or run the worker where the GPU is (kernelLsp.workerPrefix)."


class HostMemoryShort(UserError):
    """Found before the run: the copies of parameters and inputs that a validation makes do not fit into free RAM."""

    template = (
        "Validating {class_name} without a GPU takes about {needed} of memory, and {there} are free. "
        "Use a machine with a GPU, or example inputs and weights that are smaller."
    )


class GpuOutOfMemory(UserError):
    """A GPU allocation of the module or of a check failed. Sizes are text, with their unit; ``detail``: torch's own words."""

    template = (
        "{device} has too little free memory to validate {class_name}: about {needed} are needed, {there} are free "
        "({detail}). Free some, or use smaller example inputs."
    )


class GpuTaken(UserError):
    """Other processes of kernel-lsp kept one from checking or timing on a GPU for too long; ``detail``: for how long."""

    template = "{device} was not free to validate on: {detail}. End those that are stuck, and try again."


class InterpreterMissing(UserError):
    """The worker's interpreter is not there, or ended before it said anything; ``detail``: its last words."""

    template = "The worker's interpreter could not be started: {detail}. Set kernelLsp.interpreter to a Python that has torch and triton."


class WorkerDied(UserError):
    """The worker, or a process forked from it, ended during a request; ``detail``: its signal or last line."""

    template = "The worker ended while it was working ({detail}). It will be restarted; run the command again."


class WorkerTimedOut(UserError):
    """A request took longer than its limit; ``seconds``: how long, ``stage``: what it was doing, ``busy``: a sentence about other work."""

    template = "The worker gave no answer within {seconds:.0f} s while {stage}; it was stopped.{busy} Raise kernelLsp.seconds or use smaller example inputs."

    def __init__(self, *, busy: str = "", **values: Any) -> None:
        super().__init__(busy=busy, **values)


class TemporaryFolderFull(UserError):
    """Writing to the scratch folder failed for lack of space or quota."""

    template = (
        "The folder for temporary files, {folder}, is full ({detail}). Candidates are kept there while they are "
        "validated. Free space there, or restart with TMPDIR set to a folder that has space."
    )
