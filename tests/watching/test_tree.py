"""Which folders are watched and which files count, links and environments among them."""

import os
from pathlib import Path

from kernel_lsp.watching.tree import look


def test_folders_and_links_are_entered_once_and_what_is_installed_never(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project / "model", project / ".git", project / "env/lib", project / "node_modules/x", elsewhere):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("")
    (project / "env/pyvenv.cfg").write_text("")
    (project / "model/notes.txt").write_text("")
    os.symlink(project, project / "model/loop")
    os.symlink(elsewhere, project / "linked")
    target = tmp_path / "target.py"
    target.write_text("X = 1\n")
    os.symlink(target, project / "link.py")

    tree = look([project])
    assert set(tree.files) == {project / "model/a.py", project / "linked/a.py", project / "link.py"}
    assert tree.folders[tmp_path].only == {"project", "target.py"}  # of the root itself, and of what is linked to
    whole = {path for path, folder in tree.folders.items() if folder.only is None}
    assert whole == {project, project / "model", project / "linked"}

    target.write_text("X = 2\n")
    assert look([project]).changed_since(tree) == {project / "link.py"}


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("X = 1\n")
    os.utime(file, ns=(10**18, 10**18))
    before = look([tmp_path])
    file.write_text("X = 2\n")
    os.utime(file, ns=(10**18, 10**18))
    assert look([tmp_path]).changed_since(before) == {file}


def test_what_is_missing_is_waited_for_where_it_would_come(tmp_path: Path) -> None:
    tree = look([tmp_path / "a/b"], further=[tmp_path / "lib/helper.py"])
    assert not tree.files and tree.folders[tmp_path].only == {"a", "lib"}
    (tmp_path / "lib").mkdir()
    tree = look([tmp_path / "a/b"], further=[tmp_path / "lib/helper.py"])
    assert tree.folders[tmp_path / "lib"].only == {"helper.py"}


def test_too_many_folders_leave_out_the_deepest(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "z").mkdir()
    tree = look([tmp_path], most=3)
    assert tree.left_out == tmp_path / "a/b"
    assert tmp_path / "z" in tree.folders
