"""Rounds of changes on real folders: through inotify, by comparing, and through watchdog's own observer."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_lsp.errors import UserError
from kernel_lsp.watching import Tree, Watcher, watcher
from kernel_lsp.watching.recursive import Recursive


class Rounds:
    """What a watcher tells."""

    def __init__(self) -> None:
        self.rounds: list[set[Path]] = []
        self.warnings: list[UserError] = []

    async def changed(self, tree: Tree, files: set[Path]) -> None:
        self.rounds.append(files)

    async def next(self, seconds: float = 15.0) -> set[Path]:
        deadline = time.monotonic() + seconds
        while not self.rounds:
            assert time.monotonic() < deadline, "no round"
            await asyncio.sleep(0.02)
        return self.rounds.pop(0)


@pytest.mark.parametrize("how", ["inotify", "observer", "comparing"])
async def test_bursts_renames_and_folders_that_come_and_go(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "inotify" and sys.platform != "linux":
        pytest.skip("inotify is Linux's")
    if how == "observer":  # what other systems use

        def notifier(woken: Callable[[], None]) -> Recursive:
            return Recursive(woken)

        monkeypatch.setattr(watcher, "_notifier", notifier)
    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.1)
    root = tmp_path / "project"
    root.mkdir()
    told = Rounds()
    one = Watcher([root], told.changed, told.warnings.append, poll=how == "comparing")
    await one.start()
    assert one.polls == (how == "comparing")
    try:
        many = {root / f"{number}.py" for number in range(500 if how == "inotify" else 20)}
        for file in many:
            file.write_text("")
        assert await told.next() == many

        (root / "sub/deep").mkdir(parents=True)  # and at once a file in it
        new = root / "sub/deep/new.py"
        new.write_text("")
        assert await told.next() == {new}
        saved = root / "sub/deep/.new.py.swp"
        saved.write_text("X = 1\n")
        saved.rename(new)  # as editors save
        assert await told.next() == {new}

        (root / "sub").rename(root / "other")
        assert await told.next() == {new, root / "other/deep/new.py"}
        (root / "other/deep/new.py").write_text("X = 2\n")
        assert await told.next() == {root / "other/deep/new.py"}

        (root / "notes.txt").write_text("no module")
        root.rename(tmp_path / "away")
        assert await told.next() == many | {root / "other/deep/new.py"}
        (tmp_path / "away").rename(root)
        assert await told.next() == many | {root / "other/deep/new.py"}
        (root / "0.py").unlink()
        assert await told.next() == {root / "0.py"}
    finally:
        await one.close()
    assert not told.rounds and not told.warnings


async def test_files_beside_the_roots(tmp_path: Path) -> None:
    """What a class uses may lie elsewhere, and may not be there yet."""
    (tmp_path / "project").mkdir()
    told = Rounds()
    one = Watcher([tmp_path / "project"], told.changed, told.warnings.append)
    await one.start()
    helper = tmp_path / "lib/helper.py"
    one.watch_also([helper])
    await asyncio.sleep(0.3)
    try:
        helper.parent.mkdir()
        helper.write_text("X = 1\n")
        (helper.parent / "else.py").write_text("")
        assert await told.next() == {helper}
        (helper.parent / "else.py").write_text("X = 1\n")
        helper.write_text("X = 2\n")
        assert await told.next() == {helper}
    finally:
        await one.close()
    assert not told.rounds
