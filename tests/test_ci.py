"""What ``.ci/run`` runs once more: the tests that failed, or all of a target where the first run did not get to all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Each run begins with a line "run", and each test writes its name. The process of pytest is MAIN: under xdist others run the tests.
MAKEFILE = f"""
install-editors lint test-slow test-models test-editors:
	@true
test:
	@echo run >> ran.txt
	@exec env MAIN=$$$$ {sys.executable} -m pytest $(WORKERS)
"""
#: Editors fail the first time; what is fetched for them takes longer than all targets before.
OF_EDITORS = """
lint test test-slow test-models:
	@true
install-editors:
	@sleep 0.5; echo fetched >> ran.txt
test-editors:
	@echo tested $(MAKEFLAGS) >> ran.txt; test `grep -c tested ran.txt` = 2
"""
PLUGINS = "-p xdist.plugin -p xdist.looponfail -p pytest_rerunfailures -p pytest_timeout"
CONFTEST = """
def pytest_runtest_setup(item):
    with open("ran.txt", "a") as file:
        print(item.name, file=file)
"""
#: in test_b.py and in the first run alone
TROUBLE = {
    "a failure": "def test_b():\n    assert not FIRST",
    "a crash": "def test_b():\n    FIRST and os._exit(1)",
    "a killed pytest": "def test_b():\n    FIRST and os.kill(int(os.environ['MAIN']), 9) is None and time.sleep(3)",
    "a file that cannot be collected": "def test_b():\n    pass\nassert not FIRST",
}


def outside() -> dict[str, str]:
    """The environment without what this pytest was started with."""
    outer = ("PYTEST", "PYTHONPATH", "MAKE", "MFLAGS")
    return {name: value for name, value in os.environ.items() if not name.startswith(outer)}


def runs(folder: Path, trouble: str, *workers: str) -> tuple[int, list[set[str]]]:
    """The script's exit status, and the tests that each of its runs of ``make test`` began."""
    tests = folder / "tests"
    tests.mkdir()
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    for name in ("__init__.py", "exit_status.py"):
        shutil.copy(ROOT / "tests" / name, tests)
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = --import-mode=importlib {PLUGINS}\n")
    (tests / "conftest.py").write_text(CONFTEST)
    for name in ("test_a", "test_c", "test_d"):
        (tests / f"{name}.py").write_text(f"def {name}():\n    pass\n")
    first = "import os, time\nFIRST = open('ran.txt').read().count('run') == 1\n"
    (tests / "test_b.py").write_text(f"{first}{trouble}\n")
    environment = outside()
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # importing those that no test here needs takes seconds
    environment["WORKERS"] = " ".join(workers)
    ended = subprocess.run(
        ["sh", ".ci/run"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100
    )
    print(ended.stdout.decode())
    begun = (folder / "ran.txt").read_text().split("run\n")[1:]
    return ended.returncode, [set(names.split()) for names in begun]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "workers"),
    # In one process: test_what_fails_twice_fails.
    [("a failure", 2), ("a crash", 2), ("a file that cannot be collected", 2)],
)
def test_where_all_others_ran_those_that_failed_run_once_more(tmp_path, trouble, workers):
    status, (first, second) = runs(tmp_path, TROUBLE[trouble], "-n", str(workers))
    assert status == 0 and first >= {"test_a", "test_c", "test_d"}
    assert second == {"test_b"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "workers"),
    # In one process a test that ends it ends pytest, as one that kills it does.
    [("a file that cannot be collected", 0), ("a crash", 0), ("a killed pytest", 2)],
)
def test_where_some_may_not_have_run_all_run_once_more(tmp_path, trouble, workers):
    status, runs_of_all = runs(tmp_path, TROUBLE[trouble], "-n", str(workers))
    assert status == 0 and runs_of_all[1] == {"test_a", "test_b", "test_c", "test_d"}


@pytest.mark.slow
def test_what_fails_twice_fails(tmp_path):
    status, (_, second) = runs(tmp_path, "def test_b():\n    assert False", "-n", "0")
    assert status != 0 and second == {"test_b"}


def test_editors_are_tested_together_when_what_they_take_is_there_and_else_one_after_the_other(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "Makefile").write_text(OF_EDITORS)
    subprocess.run(["sh", ".ci/run"], cwd=tmp_path, env=outside(), check=True, timeout=60)
    fetched, together, again = (tmp_path / "ran.txt").read_text().splitlines()
    assert fetched == "fetched" and "-j2" in together and "-j" not in again


def test_nothing_is_fetched_any_more_when_it_has_ended(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "Makefile").write_text(OF_EDITORS.replace("@true", "@false"))
    ended = subprocess.run(["sh", ".ci/run"], cwd=tmp_path, env=outside(), timeout=60, capture_output=True, check=False)
    assert ended.returncode != 0 and (tmp_path / "ran.txt").read_text() == "fetched\n"
