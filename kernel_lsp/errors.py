"""One exception class per user error, each with one message template: what happened, where, what to do.

The standard library alone: both sides of the wire raise these. On the wire an error is
``{"code": <class name>, "message": <text>, "where": {"path", "line"} | None, "data": {…}}``.
"""

from __future__ import annotations

from typing import Any, ClassVar


class UserError(Exception):
    """An error a user can act on. Subclasses set ``template``; keyword arguments fill it."""

    template: ClassVar[str] = "{message}"
    #: values that a program may want, too: they go on the wire as ``data``
    carried: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, path: str | None = None, line: int | None = None, **values: Any) -> None:
        self.path = path
        self.line = line
        self.values = values
        super().__init__(self.template.format(path=path, line=line, **values))

    def to_json(self) -> dict[str, Any]:
        where = {"path": self.path, "line": self.line} if self.path or self.line else None
        data = {name: self.values[name] for name in self.carried if name in self.values}
        return {"code": type(self).__name__, "message": str(self), "where": where} | ({"data": data} if data else {})


class ClassNotFound(UserError):
    template = "No class {class_name} in {path}. Check the name, or save the file if the class is new."


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
        "No example inputs for {class_name}. Add get_inputs_{class_name}() to the file "
        "(code action: Add example inputs for {class_name})."
    )


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
        advice: str = "Data-dependent control flow must become torch.where, or stay outside the module.",
        **values: Any,
    ) -> None:
        super().__init__(advice=advice, **values)


class AttributeAssigned(UserError):
    template = "{class_name}.forward changes {attribute}, which is no argument (line {line}): a kernel that stands in for it would not. Hand it to forward and return its new value."


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


class RandomNotComparable(UserError):
    template = (
        "{class_name}.forward draws random numbers, and under equal random states the kernel draws others than eager: "
        "{detail}. The two cannot be compared. Validate it in a mode that draws none, or hand the random numbers to forward."
    )


class GpuOutOfMemory(UserError):
    template = (
        "{device} has too little free memory to validate {class_name}: about {needed} are needed, {there} are free "
        "({detail}). Free some, or use smaller example inputs."
    )


class NotInterpretable(UserError):
    template = "{what}, which Triton's interpreter cannot run, and there is no CUDA GPU here. Validate where there is one (kernelLsp.workerPrefix)."


class InputsNotSupported(UserError):
    template = "{class_name}: the example inputs contain {kind}, which cannot be handed to another process. Use tensors, numbers, strings, None, and lists, tuples or dicts of them."


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


class Cancelled(UserError):
    template = "Cancelled."


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
    template = "The report could not be written to {path}: {detail}. Free space, or name a place that can be written."


class NotAKernelFile(UserError):
    template = "{path} has no kernel-lsp header, or a damaged one: {detail}. Generate it again."


class UntrustedWorkspace(UserError):
    template = (
        "This workspace is not trusted, so nothing of it is imported or run. Trust it in the editor to use kernel-lsp."
    )


class SettingInvalid(UserError):
    template = "The setting {name} = {value!r} is not valid: {detail}."


class ProjectFileInvalid(UserError):
    template = "{path} does not parse: {detail}. Its [tool.kernel-lsp] settings are not used until it does."


class StandInsInvalid(UserError):
    template = "{path} cannot be used as baselines of another machine: {detail}. Leave --stand-ins out, or name a file with one JSON object a line: problem, eager_ms, compile_ms."


class KernelFileNotOurs(UserError):
    template = "{path} exists and {detail}; it was left as it is. Move it, set kernelLsp.kernelFolder, or run the command again with overwriting confirmed."


class SourceMissing(UserError):
    template = "{path} names {source} as its source, which is not there. Put the kernel file back beside its source, or generate it again."


class GeneratorUnknown(UserError):
    template = "There is no generator {name}. Choose from: {known} (kernelLsp.generators)."


class NoCandidates(UserError):
    template = "No generator proposed a kernel for {class_name}. {detail}"


class ModelHostDied(UserError):
    template = "The process that runs the language model ended while it was working ({detail}). It will be restarted; run the command again, with a smaller model if it ran out of memory."


class ModelHostTimedOut(UserError):
    template = "The language model gave no answer within {seconds:.0f} s ({stage}); it was stopped. Raise kernelLsp.seconds, or use a smaller model or fewer samples."


class ModelMissing(UserError):
    template = "The model {model} is not on this machine{detail}. Fetch it with: {command}"


class ModelDamaged(UserError):
    template = "The model in {path} cannot be read: {detail}. Fetch it again with: {command}"


class ModelTooLarge(UserError):
    template = "{model} needs {needed} of memory on {device}, where {available} can be used{detail}. {proposal}"


class ModelPackageMissing(UserError):
    template = "{interpreter} has no {package}, which this model needs{detail}. Install it there: {command}"


class ModelNotSupported(UserError):
    template = "{model} cannot be run here: {detail}. Choose another model, or serve it with a program that can (kernelLsp.openai.baseUrl)."


class PromptTooLong(UserError):
    template = "The prompt has {tokens} tokens and the model's context holds {context}, of which at least {least} are kept for the answer. Use a smaller module, or a model with a longer context."


class ModelServerUnreachable(UserError):
    template = "No model server answers at {base_url}: {detail}. Start it, or correct kernelLsp.openai.baseUrl."


class ModelServerRefused(UserError):
    template = "The model server at {base_url} refused the request (status {status}): {key}. Put a valid key in that environment variable, or name another one (kernelLsp.openai.apiKeyEnv)."


class ModelServerFailed(UserError):
    template = "The model server at {base_url} failed ({detail}) after {retries} retries. Try again later, or look at the server's log."


class ModelUnknown(UserError):
    template = "The model server at {base_url} has no model {model!r}; it offers: {offered}. Set kernelLsp.openai.model to one of them."


class FormatterFailed(UserError):
    template = "The generated source could not be formatted: {detail}."


class ModelNameInvalid(UserError):
    template = "{name} is not the name of a model. Use a known one ({known}) or ORGANISATION/REPOSITORY as on the Hugging Face Hub; for a GGUF with :QUANTISATION or :FILE after it."


class ModelServerNotNamed(UserError):
    template = "The generator openai has no server. Set kernelLsp.openai.baseUrl, or kernelLsp.openai.model for a model of OpenAI's own."


class ModelTryTarget(UserError):
    template = "{target} names no class. Write FILE::CLASS, for instance model.py::RMSNorm."


class ModelNotHere(UserError):
    template = "{name} is not in {folder}. `kernel-lsp models list` shows what is there."


class HubPackageMissing(UserError):
    template = "Getting models needs the package {package}, which {interpreter} does not have. Install it: {command}"


class HubOffline(UserError):
    template = "{name} is not here, and cannot be fetched: {reason} turns offline mode on. Unset it, or fetch the model on a machine that is online and copy its folder into {folder}."


class HubUnreachable(UserError):
    template = "{endpoint} could not be reached for {name}: {detail}. Check the network, the proxy (HTTPS_PROXY) and HF_ENDPOINT, and run the command again."


class HubRefused(UserError):
    template = "{endpoint} answered {status} for {name}: {detail}. Try again later; if it stays so, check the token (hf auth whoami)."


class RepositoryGated(UserError):
    template = "{name} is gated: its owners want their conditions accepted first. Do so at {page}, then sign in here (hf auth login, or HF_TOKEN) and run the command again."


class RepositoryUnknown(UserError):
    template = "There is no model {name} at {endpoint}, or it is private. Check the name; if it is private, sign in (hf auth login, or HF_TOKEN)."


class ModelNotUsable(UserError):
    template = "{name} has neither safetensors with their config.json nor a GGUF file, so no generator can run it. Choose another repository (`kernel-lsp models list` names some)."


class QuantisationUnknown(UserError):
    template = "{name} has no {part}. It has: {available}."


class LicenceNotAccepted(UserError):
    template = "{name} was not fetched: its licence ({licence}, {link}) has not been accepted. Read it and run the command again with --accept-licence."


class PullRunning(UserError):
    template = (
        "{name} is being fetched by another process already. Wait for it, or end it; what it has fetched is kept."
    )


class DownloadInterrupted(UserError):
    template = "The download of {name} broke off after {done} of {total}: {detail}. What was fetched is kept: run the command again to go on from there."


class DownloadCorrupt(UserError):
    template = "{file} of {name} arrived damaged twice: {detail}. It was deleted. Check the disk, and proxies or mirrors on the way (HF_ENDPOINT), and run the command again."


class TooLittleMemory(UserError):
    template = "{name} needs about {needed} of memory; here are {there}. {instead}, or fetch it nevertheless, to use it on another machine (--force)."


class TooLittleDisk(UserError):
    template = "{name} still needs {needed} of disk space; {path} has {free} left. Free some, or put the cache on another disk (HF_HOME)."


class CacheNotWritable(UserError):
    template = "{path} could not be written: {detail}. Change its permissions, or put the cache elsewhere (HF_HOME)."


class SuiteFolderMissing(UserError):
    template = "There is no folder {path} that can be read. Name the folder that holds the problems."


class SuiteEmpty(UserError):
    template = "{path} holds no problems. Wanted are {detail}. Name another folder."


class SelectionInvalid(UserError):
    template = "{option} {value} cannot be read. Write for instance {example}."


class SelectionEmpty(UserError):
    template = "{selection} leaves no problem. There are {there}. Select some of these."


class StatusUnknown(UserError):
    template = "--retry {status}: there is no such status. Choose from: {known}."


class ResultsExist(UserError):
    template = "{path} is there already. Go on with it (--resume {path}), or name another file (--results)."


class StoreUnusable(UserError):
    template = "The store of what was validated on this machine could not be {done} ({path}: {detail}). Nothing else is affected: kernels count as not validated here. Mend or delete the file, or name another one (setting store, or KERNEL_LSP_STORE)."


class StoreOff(UserError):
    template = "No store is in use: the setting store is none, or KERNEL_LSP_STORE is empty. Name a file there to keep what is validated."


class StoreLineDamaged(UserError):
    template = "Line {line} of {path} was not imported: {detail}. The other lines were taken; export the store again to get the whole."


class ImportUnreadable(UserError):
    template = "{path} cannot be imported: {detail}. Name a file that kernel-lsp store export wrote."


class ExportNotWritten(UserError):
    template = "{path} could not be written: {detail}. Name a file in a folder that you can write to."


class ResultsMissing(UserError):
    template = "There is no results file {path}. Check the name given to --resume."


class NotAResultsFile(UserError):
    template = "{path} is not a results file of kernel-lsp eval: {detail}. It was left as it is; name another file."


class ResultsOfAnotherVersion(UserError):
    template = "{path} has the results format {found}; this kernel-lsp has {known}. Go on with the kernel-lsp that wrote it, or name another file (--results)."


class ResultsInUse(UserError):
    template = "Another evaluation is writing {path}. Wait for it, or end it; or name another file (--results)."


class ResultsNotWritten(UserError):
    template = "The results could not be written to {path}: {detail}. What is in it is kept. Free space, or name a file that can be written (--results)."


class CommandNotStarted(UserError):
    template = "{command} could not be started: {detail}. Check the command after --, for instance: kernel-lsp record -- python train.py"


class NothingRecorded(UserError):
    template = "Nothing was recorded from {command}: {detail}"


class RecordingNotWritten(UserError):
    template = "The recording could not be written to {path}: {detail}. Free space, or name a file that can be written (--output)."


class RayMissing(UserError):
    template = "{interpreter} has no package ray, which --executor ray needs. Install it: {command}"


class RayUnavailable(UserError):
    template = "Ray could not be used: {detail}. Start a cluster (ray start --head), correct RAY_ADDRESS, or leave out --executor ray."


class PathMissing(UserError):
    template = "There is no file or folder {path}{hint} Check the name."


class GitMissing(UserError):
    template = "git was not found, and --changed-since needs it. Install git (and put it on PATH), or leave out --changed-since."


class NotARepository(UserError):
    template = "{path} is in no git repository, so what changed since {ref} is not known. Run the command in a repository, or leave out --changed-since."


class RevisionUnknown(UserError):
    template = "The git repository {path} has no commit {ref!r}{hint} Name a commit, branch or tag (a branch that was only fetched is written origin/BRANCH)."


class RevisionNotFetched(UserError):
    template = "The git repository {path} is a shallow clone that does not hold {ref}. Fetch the history (git fetch --unshallow, or fetch-depth: 0 of actions/checkout), or check the name."


class GitFailed(UserError):
    template = "git {command} failed in {path}: {detail}. Correct what git names, or leave out --changed-since."


class WatchesExhausted(UserError):
    template = "The system cannot tell of changed files: {detail}. They are compared every few seconds instead; raise the limit to see changes at once."


class TooManyFolders(UserError):
    template = "More than {most} folders: {path} and deeper ones are not watched. Name, or open, the folders that hold the kernels."


class InternalError(UserError):
    template = "kernel-lsp hit an error of its own: {detail}. Please report it with the log."


def from_json(data: dict[str, Any]) -> UserError:
    """The error that ``to_json`` described; an unknown code becomes a plain ``UserError`` with its text."""
    kind = {k.__name__: k for k in UserError.__subclasses__()}.get(data.get("code", ""), UserError)
    error = kind.__new__(kind)
    where = data.get("where") or {}
    error.path, error.line, error.values = where.get("path"), where.get("line"), dict(data.get("data") or {})
    Exception.__init__(error, data.get("message", ""))
    return error
