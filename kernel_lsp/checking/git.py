"""What git says of a repository. Nothing is written: git is told to take no locks, and to leave its index alone."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp import nearest
from kernel_lsp.errors import GitFailed, GitMissing, NotARepository, RevisionNotFetched, RevisionUnknown

_SECONDS = 120


@dataclass(frozen=True)
class Changes:
    """The tracked files that may differ between a commit and the working tree; paths are relative to the root.

    A file with another time and the same contents is among them: to find that out, git would refresh its index.
    """

    files: frozenset[str]  # names of now and of then, submodules too
    renamed: dict[str, str]  # name of now → name of then


def find_root(folder: Path) -> Path | None:
    """The root of the working tree that holds a folder; None where there is none, or no git."""
    try:
        return _root(folder)
    except (GitMissing, GitFailed):
        return None


def root_of(folder: Path, ref: str) -> Path:
    """The root of the working tree that holds a folder.

    Raises:
        NotARepository: there is none.
        GitMissing, GitFailed: git is not there, or refuses (for instance another user's repository).
    """
    root = _root(folder)
    if root is None:
        raise NotARepository(path=str(folder), ref=ref)
    return root


def _root(folder: Path) -> Path | None:
    done = _git(folder, "rev-parse", "--show-toplevel")
    text = os.fsdecode(done.stdout).removesuffix("\n")
    if done.returncode == 0:
        return Path(text) if text else None  # a bare repository has no working tree
    said = _said(done)
    if "not a git repository" in said or "must be run in a work tree" in said:
        return None
    raise GitFailed(command="rev-parse", path=str(folder), detail=said)


def resolve(root: Path, ref: str) -> str | None:
    """The commit that a name means; None for HEAD where nothing was committed yet.

    Raises:
        RevisionUnknown: there is none of that name.
        RevisionNotFetched: the clone is shallow and does not hold it.
    """
    if ref and not ref.startswith("-"):  # that would be an option of git's
        done = _git(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        if done.returncode == 0:
            return done.stdout.decode("ascii").strip()
    if ref == "HEAD" and not _git(root, "rev-list", "-n", "1", "--all").stdout:
        return None
    if _git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true":
        raise RevisionNotFetched(path=str(root), ref=ref)
    refs = os.fsdecode(_git(root, "for-each-ref", "--format=%(refname:short)").stdout).split("\n")
    raise RevisionUnknown(path=str(root), ref=ref, hint=nearest.hint(ref, filter(None, refs)) or ".")


def tree(root: Path, commit: str) -> dict[str, str]:
    """The files of a commit: path → the hash of its contents, or "" for a submodule.

    Raises:
        GitFailed, GitMissing: git reports an error, or is not installed.
    """
    files = {}
    for entry in _text(root, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        about, tab, path = entry.partition("\t")
        if tab:
            _, kind, name = about.split(" ")
            files[path] = name if kind == "blob" else ""
    return files


def changes(root: Path, commit: str) -> Changes:
    """What differs between a commit and the working tree, the staged and the unstaged.

    Raises:
        GitFailed, GitMissing: git reports an error, or is not installed.
    """
    output = _text(
        *(root, "diff", "--name-status", "-z", "--find-renames", "--no-ext-diff", "--no-relative"),
        *("--ignore-submodules=none", commit, "--"),
    )
    words = iter(output.split("\0"))
    files, renamed = set(), {}
    for status in words:
        if not status:
            continue
        path = next(words)
        files.add(path)
        if status[0] in "RC":
            now = next(words)
            files.add(now)
            renamed[now] = path
    return Changes(frozenset(files), renamed)


def contents(root: Path, name: str) -> bytes:
    """The contents that a hash stands for.

    Raises:
        GitFailed, GitMissing: git reports an error, or is not installed.
    """
    return _checked(root, "cat-file", "blob", name)


def _text(root: Path, *arguments: str) -> str:
    return os.fsdecode(_checked(root, *arguments))


def _checked(root: Path, *arguments: str) -> bytes:
    done = _git(root, *arguments)
    if done.returncode != 0:
        raise GitFailed(command=arguments[0], path=str(root), detail=_said(done))
    return done.stdout


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "-C", str(folder), "-c", "diff.autoRefreshIndex=false", *arguments]
    try:
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError:
        raise GitMissing() from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(command=arguments[0], path=str(folder), detail=error) from None


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    """Git's message as one line. It may name the command that helps, so all of it."""
    said = " ".join(os.fsdecode(done.stderr).split())
    return said.removeprefix("fatal: ").rstrip(".") or f"exit status {done.returncode}"
