"""Suites of problems, the results of an evaluation, and the machines of a cluster."""

from __future__ import annotations

from .base import UserError


class StandInsInvalid(UserError):
    template = "{path} cannot be used as baselines of another machine: {detail}. Leave --stand-ins out, or name a file with one JSON object a line: problem, eager_ms, compile_ms."


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


class RayMissing(UserError):
    template = "{interpreter} has no package ray, which --executor ray needs. Install it: {command}"


class RayUnavailable(UserError):
    template = "Ray could not be used: {detail}. Start a cluster (ray start --head), correct RAY_ADDRESS, or leave out --executor ray."
