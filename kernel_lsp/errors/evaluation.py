"""Suites of problems, the results of an evaluation, and the machines of a cluster."""

from __future__ import annotations

from .base import UserError


class StandInsInvalid(UserError):
    """The file of times of another machine cannot be read, or a line of it, ``line``, is none of a problem's."""

    template = "{path} cannot be used as baselines of another machine: {detail}. Leave --stand-ins out, or name a file with one JSON object a line: problem, eager_ms, compile_ms."


class SuiteFolderMissing(UserError):
    """The folder of a suite of problems is not there or is no folder."""

    template = "There is no folder {path} that can be read. Name the folder that holds the problems."


class SuiteEmpty(UserError):
    """Nothing in the named folders is a problem of the suite; ``detail``: what is one."""

    template = "{path} holds no problems. Wanted are {detail}. Name another folder."


class SelectionInvalid(UserError):
    """The value of ``--level`` or ``--problem`` has not the form of numbers and ranges; ``example``: one that has."""

    template = "{option} {value} cannot be read. Write for instance {example}."


class SelectionEmpty(UserError):
    """No problem of the suite matches what was selected; ``there``: the levels and numbers that it has."""

    template = "{selection} leaves no problem. There are {there}. Select some of these."


class StatusUnknown(UserError):
    """``--retry`` names a status that no record can have."""

    template = "--retry {status}: there is no such status. Choose from: {known}."


class ResultsExist(UserError):
    """A new evaluation would write over the results of another one."""

    template = "{path} is there already. Go on with it (--resume {path}), or name another file (--results)."


class ResultsMissing(UserError):
    """``--resume`` names a file that is not there."""

    template = "There is no results file {path}. Check the name given to --resume."


class NotAResultsFile(UserError):
    """The file cannot be read, or its first line is not the header of a results file."""

    template = "{path} is not a results file of kernel-lsp eval: {detail}. It was left as it is; name another file."


class ResultsOfAnotherVersion(UserError):
    """The header's format, ``found``, is not the one, ``known``, that this version reads and appends to."""

    template = "{path} has the results format {found}; this kernel-lsp has {known}. Go on with the kernel-lsp that wrote it, or name another file (--results)."


class ResultsInUse(UserError):
    """Another process holds the lock of the results file."""

    template = "Another evaluation is writing {path}. Wait for it, or end it; or name another file (--results)."


class ResultsNotWritten(UserError):
    """Opening, cutting or appending to the results file failed; ``detail``: the system's words."""

    template = "The results could not be written to {path}: {detail}. What is in it is kept. Free space, or name a file that can be written (--results)."


class RayMissing(UserError):
    """``--executor ray`` was given and ``ray`` cannot be imported."""

    template = "{interpreter} has no package ray, which --executor ray needs. Install it: {command}"


class RayUnavailable(UserError):
    """No cluster answers, or all of its workers were lost."""

    template = "Ray could not be used: {detail}. Start a cluster (ray start --head), correct RAY_ADDRESS, or leave out --executor ray."
