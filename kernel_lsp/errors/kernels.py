"""Kernel files and where candidates come from."""

from __future__ import annotations

from .base import UserError


class KernelFileEdited(UserError):
    template = "{path} was edited since kernel-lsp wrote it; it was left as it is. Move or delete it, or run the command again with overwriting confirmed."


class FasterKernelMissing(UserError):
    template = (
        "The store has no faster kernel of {class_name}: none was found when its kernel was last validated, or it was removed "
        "since. Validate the kernel again."
    )


class FasterKernelNotCorrect(UserError):
    template = (
        "The faster kernel of {class_name} is no longer correct ({status}): {reason}. Its kernel file was left as it is. "
        "Generate a new kernel instead."
    )


class FileNotWritten(UserError):
    template = "{path} could not be written: {detail}. Free space or change the permissions, or set kernelLsp.kernelFolder to a folder that can be written."


class ReportNotWritten(UserError):
    template = "The report could not be written to {path}: {detail}. Create the folder, free space, or name a place that can be written."


class NotAKernelFile(UserError):
    template = "{path} has no kernel-lsp header, or a damaged one: {detail}. Generate it again."


class SourceGiven(UserError):
    template = "{path} is a source file, and kernel files are validated. {advice}"


class KernelFileNotOurs(UserError):
    template = "{path} exists and {detail}; it was left as it is. Move it, set kernelLsp.kernelFolder, or run the command again with overwriting confirmed."


class SourceMissing(UserError):
    template = "{path} names {source} as its source, which is not there. Put the kernel file back beside its source, or generate it again."


class GeneratorUnknown(UserError):
    template = "There is no generator {name}. Choose from: {known} (kernelLsp.generators)."


class NoCandidates(UserError):
    template = "No generator proposed a kernel for {class_name}. {detail}"


class FormatterFailed(UserError):
    template = "The generated source could not be formatted: {detail}."
