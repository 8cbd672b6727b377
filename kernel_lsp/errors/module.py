"""The user's module: its file, its example inputs, what it does, whether it can be exported and written."""

from __future__ import annotations

from typing import Any

from .base import UserError


class ClassNotFound(UserError):
    template = "No class {class_name} in {path}{hint} Check the name, or save the file if the class is new."

    def __init__(self, *, hint: str = ".", **values: Any) -> None:
        """``hint``: the end of the first sentence, with the nearest name."""
        super().__init__(hint=hint, **values)


class NoModuleClass(UserError):
    template = (
        "{path} has no class that derives from torch.nn.Module. Name a file or a folder that has one, or FILE::CLASS."
    )


class NotAModule(UserError):
    template = "{class_name} in {path} is not a class derived from torch.nn.Module."


class ClassDefinedTwice(UserError):
    template = "{path} defines {class_name} more than once (line {line}); rename one of them."


class NotSavedYet(UserError):
    template = "{path} is not on disk yet. Save the file first: the worker imports it from there."


class PathNotUtf8(UserError):
    template = (
        "{name} is not valid UTF-8: {part} has bytes of another encoding. torch.export and Triton cannot read such a "
        "path. Rename it."
    )


class SyntaxInvalid(UserError):
    template = "{path} does not parse at line {line}: {detail}. Fix the syntax error and try again."


class NoExampleInputs(UserError):
    template = (
        "No example inputs for {class_name}. Add get_inputs_{function}() to the file "
        "(code action: Add example inputs for {class_name})."
    )

    def __init__(self, *, class_name: str, **values: Any) -> None:
        super().__init__(class_name=class_name, function=class_name.replace(".", "_"), **values)


class ExampleInputsFailed(UserError):
    template = "{function} failed at line {line}: {detail}. Correct the example inputs."


class ImportFailed(UserError):
    template = "Importing {path} failed at line {line}: {detail}. Fix the import, or choose the interpreter that has it (kernelLsp.interpreter)."


class InitFailed(UserError):
    template = "{class_name}.__init__ raised at line {line}: {detail}. Check get_init_inputs_{class_name}()."


class ForwardFailed(UserError):
    template = "{class_name}.forward raised at line {line}: {detail}. Check that the example inputs fit the module."


class OutputsNotTensors(UserError):
    template = "{class_name}.forward returned {kind}; kernel-lsp needs tensors, and beside them takes numbers, texts and None, in tuples, lists, dicts and dataclasses."


class NotExportable(UserError):
    template = "torch.export cannot trace {class_name}.forward (line {line}): {detail}. {advice}"

    def __init__(
        self,
        *,
        advice: str = "Generate kernels for the modules inside it, or leave it to torch.",
        **values: Any,
    ) -> None:
        super().__init__(advice=advice, **values)


class AttributeAssigned(UserError):
    template = "{class_name}.forward changes {attribute} (line {line}): a kernel that stands in for it would not, since {why}. Hand it to forward and return its new value."

    def __init__(self, *, why: str = "", **values: Any) -> None:
        super().__init__(why=why or "it changes no more than a module's own tensors", **values)


class NothingToLower(UserError):
    template = (
        "{class_name} cannot be written in Triton yet; the first that stopped it is {op}{detail}. "
        "Leave it to torch, or generate for a part of it."
    )

    carried = ("op", "kept")

    def __init__(self, *, detail: str = "", **values: Any) -> None:
        """``detail``: why, as a clause or a sentence; empty where the operator says enough.

        ``kept``, where it is known: the operators that were not lowered → how often.
        """
        reason = detail.strip().rstrip(".")
        first, space, rest = reason.partition(" ")
        reason = (first.lower() if first.istitle() else first) + space + rest
        super().__init__(detail=f": {reason}" if reason else "", **values)


class LoweringFailed(UserError):
    template = "kernel-lsp failed to lower {op} in {class_name} ({file}, line {at}: {detail}); torch runs it. Please report it."
    carried = ("op", "file", "at", "detail")


class NotWritable(UserError):
    template = "A class that stands in for {class_name} cannot be written: {detail}. Generate kernels for the modules inside it instead."


class NotSliceable(UserError):
    template = "{class_name} cannot be written as one self-contained module for a language model's prompt (line {line}): {detail}. Let the synthesizer write its kernel, or move what the class uses to the top of its file."


class DeviceMissing(UserError):
    template = "The example inputs of {class_name} are on {device}, which is not here: {detail}. Make them on the CPU, or run the worker where the device is (kernelLsp.workerPrefix)."


class RandomNotComparable(UserError):
    template = (
        "{class_name}.forward draws random numbers, and under equal random states the kernel draws others than eager: "
        "{detail}. The two cannot be compared. Validate it in a mode that draws none, or hand the random numbers to forward."
    )


class NotInterpretable(UserError):
    template = "{what}, which Triton's interpreter cannot run, and there is no CUDA GPU here. Validate where there is one (kernelLsp.workerPrefix)."


class InputsNotSupported(UserError):
    template = "{class_name}: the example inputs contain {kind}, which cannot be handed to another process. Use tensors, numbers, strings, None, and lists, tuples or dicts of them."
