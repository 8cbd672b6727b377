from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.confinement.attacks import KERNEL, MODULE
from tests.confinement.waiting import wait_until
from tests.worker.worker_client import Client


class Victim:
    """A user with a project, a home folder and a worker; ``attack`` has a candidate run a function of the module."""

    def __init__(self, folder: Path, without: str = "", command: list[str] | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = self.home / "work" / "project"
        self.project.mkdir(parents=True)
        (self.project / "pyproject.toml").touch()
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "id_test").write_text("the secret of this test")
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.env = {
            **{k: v for k, v in os.environ.items() if k != "HOME"},
            "HOME": str(self.home),
            "TMPDIR": str(self.scratch),
            "MY_SERVICE_TOKEN": "the token of this test",
            "KERNEL_LSP_WITHOUT_LAYERS": without,
        }
        self.warm = False  # whether it has validated something
        self.worker = Client(command, env=self.env)

    def attack(
        self, code: str, device: str = "interpreter", seconds: float = 60, beside: str = "", **facts: Any
    ) -> dict[str, Any]:
        """The verdict on a kernel that is right, and first runs ``code`` with ``facts`` as names, confined as it is.

        The code lies in the module's file as a function, since what a kernel's own text may say is screened. ``beside``:
        what the file says beside it, for the user's module to do when it is imported.
        """
        lines = [f"{name} = {value!r}" for name, value in facts.items()] + code.strip().splitlines()
        body = "\n".join("        " + line for line in lines)
        source = MODULE.replace("        BODY", body) + beside
        path = self.project / "victim.py"
        path.write_text(source)
        given = {"device": device, "seconds": seconds, "measure": "none"}
        result = self.worker.call("validate", path=str(path), class_name="Scale", source=KERNEL, **given)
        assert path.read_text() == source or "source_may_change" in facts
        return result["verdict"]

    def attacks(self, codes: dict[str, str], **facts: Any) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """(the verdict, name → what that attack said) for several attacks, one after the other in one candidate."""
        lines = ["_plain = globals()['tell']"]
        for name, code in codes.items():
            lines += [f"def tell(*words, _name={name!r}):", "    _plain(f'[{_name}]', *words)", "try:"]
            lines += ["    " + line for line in code.strip().splitlines()]
            lines += ["    tell('done')", "except BaseException as error:", "    tell(type(error).__name__, error)"]
        before = len(self.said())
        verdict = self.attack("\n".join(lines), **facts)

        def told() -> dict[str, list[str]]:
            found = [re.match(r"attack: \[(.*?)\] (.*)", line) for line in self.said()[before:]]
            return {name: [one[2] for one in found if one and one[1] == name] for name in codes}

        wait_until(lambda: all(told().values()), 3)  # what they say comes over another pipe than the verdict
        return verdict, told()

    def said(self) -> list[str]:
        """What attacks printed, since they began."""
        return [line for line in self.worker.stderr.splitlines() if line.startswith("attack: ")]

    def close(self) -> None:
        self.worker.close()


@pytest.fixture(scope="session")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    found = Victim(tmp_path_factory.mktemp("confined"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    """The same without Landlock, what takes its place, and seccomp: what the attacks do there shows that they are real."""
    found = Victim(tmp_path_factory.mktemp("bare"), "landlock,namespace,seccomp,cgroup")
    yield found
    found.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[..., Victim]]:
    """A worker that the test may end or break."""
    made: list[Victim] = []

    def make(without: str = "") -> Victim:
        made.append(Victim(tmp_path / f"victim{len(made)}", without))
        return made[-1]

    yield make
    for one in made:
        one.close()
