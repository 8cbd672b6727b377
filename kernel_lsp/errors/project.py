"""What is worked on and how: settings, trust, paths, git, watched folders, recordings."""

from __future__ import annotations

from .base import UserError


class UntrustedWorkspace(UserError):
    template = (
        "This workspace is not trusted, so nothing of it is imported or run. Trust it in the editor to use kernel-lsp."
    )


class SettingInvalid(UserError):
    template = "The setting {name} = {value!r} is not valid: {detail}."


class ProjectFileInvalid(UserError):
    template = "{path} does not parse: {detail}. Its [tool.kernel-lsp] settings are not used until it does."


class ProjectTableUnknown(UserError):
    template = "{path} has a table [tool.{name}], which nothing reads; did you mean [tool.kernel-lsp]? Rename it."


class CommandNotStarted(UserError):
    template = "{command} could not be started: {detail}. Check the command after --, for instance: kernel-lsp record -- python train.py"


class NothingRecorded(UserError):
    template = "Nothing was recorded from {command}: {detail}"


class RecordingNotWritten(UserError):
    template = "The recording could not be written to {path}: {detail}. Free space, or name a file that can be written (--output)."


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
