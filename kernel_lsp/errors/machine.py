"""The machine: the worker's interpreter and its packages, devices, memory, temporary files."""

from __future__ import annotations

from .base import UserError


class PackageMissing(UserError):
    template = "{interpreter} has no {package}. Install it there ({command}), or choose another interpreter (kernelLsp.interpreter)."


class PackageTooOld(UserError):
    template = "{interpreter} has {package} {version}; kernel-lsp needs {needed}. Upgrade it there ({command}), or choose another interpreter (kernelLsp.interpreter)."


class PackageBroken(UserError):
    template = "{interpreter} cannot import {package}: {detail}. Reinstall it there ({command}), or choose another interpreter (kernelLsp.interpreter)."


class NoSuchDevice(UserError):
    template = "There is no device {device} for {interpreter}: {detail}. Set kernelLsp.device to auto or interpreter, or run the worker where the GPU is (kernelLsp.workerPrefix)."


class HostMemoryShort(UserError):
    template = (
        "Validating {class_name} without a GPU takes about {needed} of memory, and {there} are free. "
        "Use a machine with a GPU, or example inputs and weights that are smaller."
    )


class GpuOutOfMemory(UserError):
    template = (
        "{device} has too little free memory to validate {class_name}: about {needed} are needed, {there} are free "
        "({detail}). Free some, or use smaller example inputs."
    )


class InterpreterMissing(UserError):
    template = "The worker's interpreter could not be started: {detail}. Set kernelLsp.interpreter to a Python that has torch and triton."


class WorkerDied(UserError):
    template = "The worker ended while it was working ({detail}). It will be restarted; run the command again."


class WorkerTimedOut(UserError):
    template = "The worker gave no answer within {seconds:.0f} s while {stage}; it was stopped. Raise kernelLsp.seconds or use smaller example inputs."


class TemporaryFolderFull(UserError):
    template = (
        "The folder for temporary files, {folder}, is full ({detail}). Candidates are kept there while they are "
        "validated. Free space there, or restart with TMPDIR set to a folder that has space."
    )
