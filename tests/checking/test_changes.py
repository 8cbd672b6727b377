"""Which kernels changed since a commit, in real repositories."""

import os
import shutil
from pathlib import Path

import pytest

from kernel_lsp import errors
from kernel_lsp.checking.changes import changed_since
from tests.checking.scratch import write_kernel, write_module
from tests.repository import commit, git


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three classes; ``Reaches`` uses a function of another file."""
    root = tmp_path / "repository"
    write_module(root / "plain.py", "Plain", "x * 0.5")
    write_module(root / "a b" / "масштаб.py", "Scale", "x * 0.5")
    write_module(root / "reaches.py", "Reaches", "half(x)", imports="from helper import half")
    (root / "helper.py").write_text("def half(x):\n    return x * 0.5\n")
    for source, name in (("plain.py", "Plain"), ("a b/масштаб.py", "Scale"), ("reaches.py", "Reaches")):
        write_kernel(root / source, name)
    commit(root)
    monkeypatch.chdir(root)
    return root


def changed(root: Path, ref: str = "HEAD") -> list[str]:
    """The stems of the changed kernel files' names, in order."""
    files = sorted(root.rglob("*_triton.py"))
    return sorted(file.name.partition("_")[0] for file in changed_since(files, ref))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_class_a_body_and_what_a_class_reaches(repository: Path) -> None:
    assert changed(repository) == []
    edit(repository / "plain.py", "        return", "        # a comment changes nothing\n        return")
    assert changed(repository) == []
    edit(repository / "helper.py", "0.5", "0.25")
    assert changed(repository) == ["reaches"]
    edit(repository / "a b" / "масштаб.py", "0.5", "0.25")
    assert changed(repository) == ["reaches", "scale"]
    edit(next((repository / "kernels").glob("plain*")), "BLOCK=256", "BLOCK=128")
    assert changed(repository) == ["plain", "reaches", "scale"]
    commit(repository)
    assert changed(repository) == []
    assert changed(repository, "HEAD~1") == ["plain", "reaches", "scale"]


def test_new_moved_and_deleted_files(repository: Path) -> None:
    git(repository, "mv", "a b", "другое место")
    assert changed(repository) == []  # found by git under their former names
    edit(repository / "другое место" / "масштаб.py", "0.5", "0.25")
    assert changed(repository) == ["scale"]
    write_module(repository / "new.py", "New", "x * 0.5")
    write_kernel(repository / "new.py", "New")
    (repository / "plain.py").unlink()  # its kernel cannot be validated, which has to be said
    assert changed(repository) == ["new", "plain", "scale"]


def test_a_submodule(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    write_module(library / "inner.py", "Inner", "x * 0.5")
    write_kernel(library / "inner.py", "Inner")
    commit(library)
    git(repository, "submodule", "add", "-q", str(library), "part")
    write_module(repository / "uses.py", "Uses", "Inner()(x)", imports="from part.inner import Inner")
    write_kernel(repository / "uses.py", "Uses")
    commit(repository)
    assert changed(repository) == []
    edit(repository / "part" / "inner.py", "0.5", "0.25")
    assert changed(repository) == ["inner", "uses"]


def test_no_repository_and_no_such_commit(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.RevisionUnknown, match=r"no commit 'mian'; did you mean main\? Name"):
        changed(repository, "mian")
    for ref in ("", "--all", "HEAD~5", "main:plain.py"):
        with pytest.raises(errors.RevisionUnknown):
            changed(repository, ref)

    commit(repository)
    git(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    assert changed(tmp_path / "shallow") == []
    with pytest.raises(errors.RevisionNotFetched, match="fetch-depth: 0"):
        changed(tmp_path / "shallow", "HEAD~1")

    shutil.rmtree(tmp_path / "shallow" / ".git")
    with pytest.raises(errors.NotARepository, match=r"what changed since HEAD is not known\. Run"):
        changed(tmp_path / "shallow")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.GitMissing, match="Install git"):
        changed(repository)


def test_another_repository_than_the_current_one_and_one_without_commits(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write_module(other / "plain.py", "Plain", "x * 0.5")
    write_kernel(other / "plain.py", "Plain")
    git(tmp_path, "init", "-q", "other")
    assert changed(other) == ["plain"]  # nothing was committed yet
    commit(other)
    assert changed(other) == []
    linked = tmp_path / "linked"
    linked.symlink_to(other)
    assert changed(linked) == []


def test_git_writes_nothing(repository: Path) -> None:
    index = repository / ".git" / "index"
    os.utime(repository / "plain.py", (0, 0))  # git would refresh its index here
    before = index.stat().st_mtime_ns, sorted((repository / ".git").rglob("*"))
    changed(repository)
    assert (index.stat().st_mtime_ns, sorted((repository / ".git").rglob("*"))) == before
