"""Kernel files and where candidates come from."""

from __future__ import annotations

import errno
from typing import Any

from .base import UserError


class KernelFileEdited(UserError):
    """The body of a kernel file no longer has the hash in its header, and overwriting was not confirmed."""

    template = "{path} was edited since kernel-lsp wrote it; it was left as it is. Move or delete it, or run the command again with overwriting confirmed."


class FasterKernelMissing(UserError):
    """A regressed kernel was to be replaced or compared, and the store has no faster one any more."""

    template = (
        "The store has no faster kernel of {class_name}: none was found when its kernel was last validated, or it was removed "
        "since. Validate the kernel again."
    )


class FasterKernelNotCorrect(UserError):
    """The faster kernel in the store was validated again, and its verdict is not ``ok``."""

    template = (
        "The faster kernel of {class_name} is no longer correct ({status}): {reason}. Its kernel file was left as it is. "
        "Generate a new kernel instead."
    )


#: what helps where a file cannot be written, by the system's error
_REMEDIES = {
    errno.EACCES: "Change the permissions",
    errno.EPERM: "Change the permissions",
    errno.EROFS: "Mount the file system for writing",
    errno.ENOSPC: "Free space",
    errno.EDQUOT: "Free space",
}


class FileNotWritten(UserError):
    """A kernel file, or its folder, could not be made or written; ``remedy`` follows from the system's error."""

    template = "{path} could not be written: {detail}. {remedy}, or set kernelLsp.kernelFolder to a folder that can be written."

    def __init__(self, *, number: int | None = None, **values: Any) -> None:
        """``number``: the system's error, as in ``errno``."""
        remedy = _REMEDIES.get(number or 0, "Free space or change the permissions")
        super().__init__(remedy=remedy, **values)


class KernelFolderIsFile(UserError):
    """The folder for kernel files, or one above it, is a file."""

    template = "Kernel files go to the folder {folder}, and {path} is a file. Move it, or set kernelLsp.kernelFolder to another folder."


class ReportNotWritten(UserError):
    """A page or file of results could not be written, or two of them have the same place."""

    template = "The report could not be written to {path}: {detail}. Create the folder, free space, or name a place that can be written."


class NotAKernelFile(UserError):
    """A file cannot be read, or its header is missing or cannot be parsed; ``detail``: which."""

    template = "{path} has no kernel-lsp header, or a damaged one: {detail}. Generate it again."


class SourceGiven(UserError):
    """``validate`` was given a file that is no kernel file, and that has none."""

    template = "{path} is a source file without kernel files, which are what is validated. `kernel-lsp generate {path}` writes them."


class KernelFileNotOurs(UserError):
    """A kernel would replace a file without our header, or the kernel of another source; ``detail``: which."""

    template = "{path} exists and {detail}; it was left as it is. Move it, set kernelLsp.kernelFolder, or run the command again with overwriting confirmed."


class SourceMissing(UserError):
    """The source that a kernel file's header names, relative to the file, is not there."""

    template = "{path} names {source} as its source, which is not there. Put the kernel file back beside its source, or generate it again."


class KernelOrphaned(UserError):
    """The source of a kernel file has no class of that name any more; ``hint``: the end of the sentence, with the nearest name."""

    template = "{path} is the kernel of {class_name}, and {source} has no such class any more{hint} If it was renamed, generate the kernel of {source} again; delete this one."


class GeneratorUnknown(UserError):
    """A setting or ``--generator`` names a generator that there is not."""

    template = "There is no generator {name}. Choose from: {known} (kernelLsp.generators)."


class NoCandidates(UserError):
    """Every generator ended without a candidate; ``detail``: what each said, as sentences."""

    template = "No generator proposed a kernel for {class_name}. {detail}"


class FormatterFailed(UserError):
    """``ruff format`` is not installed, took too long, or refused the text."""

    template = "The generated source could not be formatted: {detail}."
