"""A terminal that a program is driven in like by a user: keys go in, and what the screen shows is waited for."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.editors.editing import Home


@dataclass(frozen=True)
class Terminal:
    socket: str

    def press(self, *keys: str) -> None:
        """Keys by tmux's names (Enter, Escape, Space)."""
        for key in keys:
            self._tmux("send-keys", key)
            if key == "Escape":
                time.sleep(0.1)  # or it and the next key would be one key with Alt

    def type(self, text: str) -> None:
        """Text as it stands, as fast as a person, since Helix 25.01 tells of changes within one instant in any order."""
        for character in text:
            self._tmux("send-keys", "-l", character)
            time.sleep(0.03)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def until(self, pattern: str, seconds: float = 10.0) -> str:
        """The screen, once it shows a pattern (in which a space is also a line's end with what stands around it)."""
        wanted = re.compile(pattern.replace(" ", r"\s+"), re.DOTALL)
        deadline = time.monotonic() + seconds
        while not wanted.search(screen := self.screen()):
            if time.monotonic() > deadline:
                pytest.fail(f"“{pattern}” did not come within {seconds} s:\n{screen}")
            time.sleep(0.1)
        return screen

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self.socket, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@contextmanager
def terminal(home: Home, folder: Path, command: list[str]) -> Iterator[Terminal]:
    """A terminal of 140 columns and 40 lines with a program in it, in a tmux of its own."""
    socket = f"kernel-lsp-{home.folder.parent.name}"
    size = ["-x", "140", "-y", "40"]
    start = ["tmux", "-L", socket, "-f", "/dev/null", "new-session", "-d", *size, *command]
    subprocess.run(start, cwd=folder, env=home.environment, check=True)
    try:
        yield Terminal(socket)
    finally:
        subprocess.run(["tmux", "-L", socket, "kill-server"], capture_output=True)
