"""What is worked on and how: settings, trust, paths, git, watched folders, recordings."""

from __future__ import annotations

from .base import UserError


class UntrustedWorkspace(UserError):
    """A request would import or run the user's code, and the editor said that the workspace is not trusted."""

    template = (
        "This workspace is not trusted, so nothing of it is imported or run. Trust it in the editor to use kernel-lsp."
    )


class SettingInvalid(UserError):
    """A setting has a value of the wrong type or out of range; ``detail``: what is allowed, and where it was set.

    ``given``: the value as in `` = 'cudaa'``; "" where it is a table, of which the detail names the part, or may be a secret.
    """

    template = "The setting {name}{given} is not valid: {detail}."


class ProjectFileInvalid(UserError):
    """``pyproject.toml`` is no TOML, or its ``tool.kernel-lsp`` is no table."""

    template = "{path} does not parse: {detail}. Its [tool.kernel-lsp] settings are not used until it does."


class ProjectTableUnknown(UserError):
    """``pyproject.toml`` has a table whose name is nearly that of the settings."""

    template = "{path} has a table [tool.{name}], which nothing reads; did you mean [tool.kernel-lsp]? Rename it."


class NoCommandGiven(UserError):
    """``record`` was given no program to run."""

    template = "No command to run. Write for instance: kernel-lsp record -- python train.py"


class CommandNotStarted(UserError):
    """The system could not start the user's program for ``record``."""

    template = "{command} could not be started: {detail}. Check the command after --, for instance: kernel-lsp record -- python train.py"


class NothingRecorded(UserError):
    """The user's program ended without a call that was recorded; ``detail``: why, as a sentence."""

    template = "Nothing was recorded from {command}: {detail}"


class RecordingNotWritten(UserError):
    """The file of recorded shapes, or its folder, cannot be written."""

    template = "The recording could not be written to {path}: {detail}. Free space, or name a file that can be written (--output)."


class PathMissing(UserError):
    """A command was given a path that is not there; ``hint``: the end of the sentence, with the nearest one."""

    template = "There is no file or folder {path}{hint} Check the name."


class ClassNotNamed(UserError):
    """A command for one class was given a folder, or a file with several; ``example``: how a class is named."""

    template = "{path} names no class. Write FILE::CLASS, for instance {example}."


class GitMissing(UserError):
    """``--changed-since`` was given, and there is no program ``git``."""

    template = "git was not found, and --changed-since needs it. Install git (and put it on PATH), or leave out --changed-since."


class NotARepository(UserError):
    """``--changed-since`` was given for a folder outside of every work tree."""

    template = "{path} is in no git repository, so what changed since {ref} is not known. Run the command in a repository, or leave out --changed-since."


class RevisionUnknown(UserError):
    """git resolves ``ref`` to no commit; ``hint``: the end of the sentence, with the nearest name."""

    template = "The git repository {path} has no commit {ref!r}{hint} Name a commit, branch or tag (a branch that was only fetched is written origin/BRANCH)."


class RevisionNotFetched(UserError):
    """git resolves ``ref`` to no commit, and the clone is shallow, as in most CI jobs."""

    template = "The git repository {path} is a shallow clone that does not hold {ref}. Fetch the history (git fetch --unshallow, or fetch-depth: 0 of actions/checkout), or check the name."


class GitFailed(UserError):
    """git ended with an error, or did not end in time; ``command``: its subcommand, ``detail``: what it said."""

    template = "git {command} failed in {path}: {detail}. Correct what git names, or leave out --changed-since."


class WatchesExhausted(UserError):
    """The limit of inotify instances or watches is reached; files are polled from then on."""

    template = "The system cannot tell of changed files: {detail}. They are compared every few seconds instead; raise the limit to see changes at once."


class TooManyFolders(UserError):
    """The tree has more folders than are watched, ``most``; ``path``: the first that was left out."""

    template = "More than {most} folders: {path} and deeper ones are not watched. Name, or open, the folders that hold the kernels."
