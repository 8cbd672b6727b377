"""History: every verdict on a class in order of time, with what changed, wherever the class was kept from."""

import pytest

from kernel_lsp.store import exporting, history, importing, kernels
from kernel_lsp.store.changes import said
from tests.store.made import BODY, found, keep


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "project" / "pkg" / "norm.py"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "project"


def test_what_changed_from_one_verdict_to_the_next(path, file, root):
    keep(path, found(1), file, root)
    keep(path, found(2), file, root)
    keep(path, found(3, "wrong", reason="off by 3"), file, root, source="# another\n")
    keep(path, found(4, kernel=25.0), file, root, fingerprint="sha256:changed")
    keep(path, found(5), file, root, fingerprint="sha256:changed", torch="2.13.0", driver="590.2")
    keep(path, found(6), file, root, fingerprint="sha256:changed", device="Other GPU", torch="2.13.0")
    keep(
        path,
        found(7),
        file,
        root,
        "# a kernel\n",
        fingerprint="sha256:changed",
        device="Other GPU",
        torch="2.13.0",
        bounds="check",
    )
    seen = history.of_class(path, file, root, "Norm", 20)
    assert [said(entry.changed) for entry in seen.entries] == [
        "",
        "",
        "kernel",
        "class, kernel",
        "driver 580.1 → 590.2, torch 2.11.0 → 2.13.0",
        "device Test GPU → Other GPU",
        "bounds trust → check",
    ]
    assert [entry.over_eager for entry in seen.entries] == [2.0, 2.0, 2.0, 4.0, 2.0, 2.0, 2.0]
    wrong = seen.entries[2]
    assert (wrong.status, wrong.reason, wrong.passed, wrong.failed, wrong.skipped) == ("wrong", "off by 3", 0, 1, 1)
    assert (wrong.eager, wrong.compiled, wrong.kernel, wrong.inputs) == (100.0, 75.0, 50.0, "float32[8, 32]")
    assert not seen.earlier and all(entry.here for entry in seen.entries)


def test_the_last_few_know_what_changed_before_them(path, file, root):
    for day in (1, 2, 3):
        keep(path, found(day), file, root, torch=f"2.{10 + day}.0")
    seen = history.of_class(path, file, root, "Norm", 2)
    assert [said(entry.changed) for entry in seen.entries] == ["torch 2.11.0 → 2.12.0", "torch 2.12.0 → 2.13.0"]
    assert seen.earlier


def test_other_classes_files_and_projects_are_not_of_it(path, file, root, tmp_path):
    keep(path, found(1), file, root)
    for others in ({"class_name": "Other"}, {}):
        keep(path, found(2), file if others else file.with_name("b.py"), root, fingerprint="sha256:o", **others)
    keep(path, found(2), tmp_path / "elsewhere" / "pkg" / "norm.py", tmp_path / "elsewhere", fingerprint="sha256:o")
    assert len(history.of_class(path, file, root, "Norm", 20).entries) == 1
    assert history.classes_under(path, root, root) == [
        (file.with_name("b.py"), "Norm"),
        (file, "Norm"),
        (file, "Other"),
    ]
    assert history.classes_under(path, file, root) == [(file, "Norm"), (file, "Other")]


def test_a_project_file_that_came_later_does_not_hide_what_was_before(path, file, root):
    keep(path, found(1), file, None)  # without a project
    keep(path, found(2), file, root)
    assert len(history.of_class(path, file, root, "Norm", 20).entries) == 2
    assert len(history.of_class(path, file, None, "Norm", 20).entries) == 2


def test_what_another_machine_found_is_told_by_the_name_of_the_project(path, file, root, tmp_path):
    theirs = tmp_path / "theirs.sqlite"
    elsewhere = tmp_path / "home" / "project"
    keep(theirs, found(1), elsewhere / "pkg" / "norm.py", elsewhere)
    keep(path, found(2), file, root)
    exporting.export(theirs, tmp_path / "export.jsonl")
    importing.take(path, tmp_path / "export.jsonl")
    assert [entry.here for entry in history.of_class(path, file, root, "Norm", 20).entries] == [False, True]
    assert str(tmp_path) not in (tmp_path / "export.jsonl").read_text()


def test_the_kernel_of_a_verdict_can_be_read_again(path, file, root):
    key = keep(path, found(1), file, root)
    assert kernels.find(key.body, path).source == BODY
    assert kernels.find("sha256:none", path) is None


def test_nothing_is_known_without_a_file(path, file, root):
    assert history.of_class(path, file, root, "Norm", 20).entries == []
    assert history.of_class(None, file, root, "Norm", 20).entries == []
    assert history.classes_under(path, root, root) == [] and not path.exists()
