"""The user's module: its file, its example inputs, what it does, whether it can be exported and written."""

from __future__ import annotations

from typing import Any

from .base import UserError

_OTHER = "the interpreter that has it (kernelLsp.interpreter)"
_CHECK_INPUTS = "Check that the example inputs fit the module."


def _of_an_import(detail: str) -> bool:
    return detail.startswith(("ModuleNotFoundError", "ImportError", "No module named"))


class ClassNotFound(UserError):
    """The file parses or imports, and has no class of that name."""

    template = "No class {class_name} in {path}{hint} Check the name, or save the file if the class is new."

    def __init__(self, *, hint: str = ".", **values: Any) -> None:
        """``hint``: the end of the first sentence, with the nearest name."""
        super().__init__(hint=hint, **values)


class SourceUnreadable(UserError):
    """A source file cannot be opened, or is not UTF-8; ``detail``: the system's or the decoder's words."""

    template = "{path} could not be read: {detail}. Change its permissions, or save it as UTF-8."

    @classmethod
    def of(cls, path: object, error: OSError | UnicodeDecodeError) -> SourceUnreadable:
        """The error for what reading the file as text raised."""
        if isinstance(error, UnicodeDecodeError):
            return cls(path=str(path), detail=f"it is not UTF-8 (byte {error.start})")
        return cls(path=str(path), detail=error.strerror or error)


class NoModuleClass(UserError):
    """A file or folder was named without a class, and none in it derives from ``torch.nn.Module``."""

    template = (
        "{path} has no class that derives from torch.nn.Module. Name a file or a folder that has one, or FILE::CLASS."
    )


class NotAPythonFile(UserError):
    """A file of another kind was named, by its suffix, and nothing in it reads as a class; ``wanted``: what the command takes."""

    template = "{path} is not a Python file. Name {wanted}."


class NotAModule(UserError):
    """The name exists in the imported file and stands for something other than a subclass of ``torch.nn.Module``."""

    template = "{class_name} in {path} is not a class derived from torch.nn.Module."


class ClassDefinedTwice(UserError):
    """Two statements of a file define the class, so that its source is not certain; ``line``: the last one's."""

    template = "{path} defines {class_name} more than once (line {line}); rename one of them."


class ClassChanged(UserError):
    """The class is another one than when its generation began, and no candidate fits the one of now."""

    template = "{class_name}, or something it uses, changed while its kernel was generated. Generate it again."


class NotSavedYet(UserError):
    """The source exists in the editor alone, or was removed from the disk."""

    template = "{path} is not on disk. Save the file first, or put it back where it was removed: the worker imports it from there."


class PathNotUtf8(UserError):
    """The path has bytes that are not UTF-8; ``part``: the component, escaped."""

    template = (
        "{name} is not valid UTF-8: {part} has bytes of another encoding. torch.export and Triton cannot read such a "
        "path. Rename it."
    )


class SyntaxInvalid(UserError):
    """Python's parser refuses the user's file; ``detail``: its message."""

    template = "{path} does not parse at line {line}: {detail}. Fix the syntax error and try again."


class NoExampleInputs(UserError):
    """Neither a function of the file, nor a setting, nor a recording gives inputs for the class."""

    template = (
        "No example inputs for {class_name}{why}. Add {functions} to the file "
        "(code action: Add example inputs for {class_name})."
    )

    def __init__(self, *, class_name: str, whole: str = "", detail: str = "", **values: Any) -> None:
        """``whole``: the class that the file's ``get_inputs()`` is for; ``detail``: what came of that with this one, a part of it."""
        function, why = class_name.replace(".", "_"), ""
        functions = f"get_inputs_{function}()"
        if whole:
            detail = detail.removesuffix(".")
            why = f", a part of {whole}: get_inputs() is for {whole}"
            why += f", and does not fit {class_name} ({detail})" if detail else ""
            functions += f", and get_init_inputs_{function}() if its constructor takes arguments,"
        super().__init__(class_name=class_name, why=why, functions=functions, detail=detail, **values)


class ExampleInputsFailed(UserError):
    """The function or table that gives the example inputs raised, or gave what no call takes."""

    template = "{function} failed at line {line}: {detail}. Correct the example inputs."


class ImportFailed(UserError):
    """The user's file cannot be read, or raises as it is imported; ``line``: the innermost one in that file."""

    template = "Importing {path} failed at line {line}: {detail}. {advice}"

    def __init__(self, *, detail: str = "", **values: Any) -> None:
        """``detail``: the exception's type and text, which the advice follows."""
        advice = (
            f"Fix the import, or choose {_OTHER}."
            if _of_an_import(detail)
            else "kernel-lsp imports the file to find the class, without arguments on the command line: put what reads "
            'them, and what runs the program, behind if __name__ == "__main__".'
            if detail.startswith("SystemExit")
            else "Correct what the file does there as it is imported, or choose another interpreter (kernelLsp.interpreter)."
        )
        super().__init__(detail=detail, advice=advice, **values)


class InitFailed(UserError):
    """The class's constructor raised with the example's arguments; ``advice`` names what gave them."""

    template = "{class_name}.__init__ raised at line {line}: {detail}. {advice}"

    def __init__(self, *, class_name: str, init_from: str = "", **values: Any) -> None:
        """``init_from``: what gave the arguments; empty where nothing did."""
        function = f"get_init_inputs_{class_name.replace('.', '_')}()"
        advice = (
            f"Check {init_from}: its arguments are from there."
            if init_from
            else f"If it takes arguments, give them by {function}."
        )
        super().__init__(class_name=class_name, advice=advice, **values)


class ForwardFailed(UserError):
    """``forward`` raised under eager torch, with the example inputs or with others that a check made."""

    template = "{class_name}.forward raised at line {line}: {detail}. {advice}"

    def __init__(self, *, detail: str = "", advice: str = "", **values: Any) -> None:
        """``detail``: the exception's type and text, which the advice follows; ``advice``: where more is known than that."""
        advice = advice or (f"Install it, or choose {_OTHER}." if _of_an_import(detail) else _CHECK_INPUTS)
        super().__init__(detail=detail, advice=advice, **values)


class OutputsNotTensors(UserError):
    """``forward`` returned no tensor, or something that results cannot be compared for; ``kind``: what."""

    template = "{class_name}.forward returned {kind}; kernel-lsp needs tensors, and beside them takes numbers, texts and None, in tuples, lists, dicts and dataclasses."


class NotExportable(UserError):
    """``torch.export`` raised; ``detail``: its reason in short, ``advice``: what may help against that one."""

    template = "torch.export cannot trace {class_name}.forward (line {line}): {detail}. {advice}"

    def __init__(
        self,
        *,
        advice: str = "Generate kernels for the modules inside it, or leave it to torch.",
        **values: Any,
    ) -> None:
        super().__init__(advice=advice, **values)


class AttributeAssigned(UserError):
    """The exported graph would lose a change that ``forward`` makes to an attribute of the module."""

    template = "{class_name}.forward changes {attribute} (line {line}): a kernel that stands in for it would not, since {why}. Hand it to forward and return its new value."

    def __init__(self, *, why: str = "", **values: Any) -> None:
        super().__init__(why=why or "it changes no more than a module's own tensors", **values)


class ArgumentChanged(UserError):
    """``forward`` changes a list or a dictionary that it is given; ``kind``: which of the two."""

    template = (
        "{class_name}.forward changes the {kind} {argument} that it is given (line {line}), which a kernel would not. "
        "Let it change one of its own: {argument} = {kind}({argument})."
    )


class NothingToLower(UserError):
    """Nothing of the graph can become a Triton kernel; ``op``: the first operator, or dtype, that stands in the way."""

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
    """A lowering raised something other than ``NotLowered``; ``file`` and ``at``: where in the synthesizer. It is told and logged."""

    template = "kernel-lsp failed to lower {op} in {class_name} ({file}, line {at}: {detail}); torch runs it. Please report it."
    carried = ("op", "file", "at", "detail")


class WayFailed(UserError):
    """One of several ways to write kernels raised an error; ``file`` and ``at``: where in the synthesizer. It is told and logged."""

    template = "kernel-lsp failed to write kernels for {class_name} in one of several ways ({way}; {file}, line {at}: {detail}); it offers those of the others. Please report it."
    carried = ("way", "file", "at", "detail")


class NotWritable(UserError):
    """Kernels, or the class around them, have no text: a condition cannot be written, or loops were unrolled into too much."""

    template = "A class that stands in for {class_name} cannot be written: {detail}. Generate kernels for the modules inside it instead."


class NotSliceable(UserError):
    """No slice of the workspace gives the class again without importing the workspace; ``detail``: what the first one lacked."""

    template = "{class_name} cannot be written as one self-contained module for a language model's prompt (line {line}): {detail}. Let the synthesizer write its kernel, or move what the class uses to the top of its file."


class DeviceMissing(UserError):
    """The module or its example asks for a device that torch does not have in the worker."""

    template = "The example inputs of {class_name} are on {device}, which is not here: {detail}. Make them on the CPU, or run the worker where the device is (kernelLsp.workerPrefix)."


class RandomNotComparable(UserError):
    """The candidate disagrees with a module that draws random numbers, and may yet be right; ``detail``: where they differ."""

    template = (
        "{class_name}.forward draws random numbers, and under equal random states the kernel draws others than eager: "
        "{detail}. The two cannot be compared. Validate it in a mode that draws none, or hand the random numbers to forward."
    )


class NotInterpretable(UserError):
    """Without a GPU a candidate uses what Triton's interpreter lacks, so there is no verdict on it; ``what``: a clause."""

    template = "{what}, which Triton's interpreter cannot run, and there is no CUDA GPU here. Validate where there is one (kernelLsp.workerPrefix)."


class InputsNotSupported(UserError):
    """The example holds an object that cannot be described to the trial; ``kind``: its type, with an article."""

    template = "The example inputs of {class_name} contain {kind}, which cannot be handed to another process. Use tensors, numbers, strings, None, and lists, tuples or dicts of them."
