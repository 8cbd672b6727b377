"""What the workflows of GitHub run is there, for the versions that pyproject.toml names.

The workflows are read line by line, since PyYAML is not among the packages of ``make test``. Of what they run, the tests run
``tools/reference.py --check`` too (``test_settings.py``).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEXTS = {path.name: path.read_text("utf-8") for path in WORKFLOWS}
#: of what a recipe or a step runs: a file of the repository
FILE = re.compile(r"(?:tools|tests|benchmarks|\.ci)/[\w./-]+")


def values(text: str, key: str) -> list[str]:
    """What stands after ``key:``, line by line; of ``key: |`` each line below it that is indented further."""
    found: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        match = re.fullmatch(rf"( *(?:- )?){re.escape(key)}: *(.*?) *", line)
        if match is None:
            continue
        if match[2] not in ("|", ">", "|-", ">-"):
            found.append(match[2])
            continue
        for below in lines[number + 1 :]:
            if below.strip() and len(below) - len(below.lstrip()) <= len(match[1]):
                break
            found += [below.strip()] if below.strip() else []
    return found


def versions(text: str, key: str) -> list[str]:
    return [version for value in values(text, key) for version in re.findall(r'"([\d.]+)"', value)]


STEPS = [(name, command) for name, text in TEXTS.items() for command in values(text, "run")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_steps_are_found():
    assert len(STEPS) >= sum(len(re.findall(r"^ *(?:- )?run:", text, re.MULTILINE)) for text in TEXTS.values()) > 0


@pytest.mark.parametrize(("workflow", "command"), STEPS)
def test_a_step_runs_a_target_or_a_script_that_is_there(workflow: str, command: str):
    words = command.split()
    if words[0] == "make":
        (target,) = words[1:]
        # -B: also what has been made. make says what it would run, and fails where a target has no rule.
        planned = subprocess.run(["make", "-nB", target], cwd=ROOT, capture_output=True, text=True)
        assert planned.returncode == 0, planned.stderr
        files = FILE.findall(planned.stdout)
        assert planned.stdout.strip(), f"make {target} does nothing"
    else:
        assert words[0] == ".venv/bin/python" or (ROOT / words[0]).is_file(), f"{workflow}: {command}"
        files = FILE.findall(command)
        assert files, f"{workflow}: {command}"
    for file in files:
        assert (ROOT / file).exists(), f"{workflow}: {command}: {file}"


def test_the_tests_run_on_the_versions_of_python_that_the_package_names():
    named = [entry.rsplit(" ", 1)[1] for entry in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", entry)]
    assert versions(TEXTS["tests.yml"], "python") == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    for text in TEXTS.values():
        assert set(versions(text, "python-version")) <= set(named)


def test_the_code_is_checked_on_the_oldest_python_as_the_configuration_says():
    lint = re.search(r"^  lint:\n((?:    .*\n)+)", TEXTS["tests.yml"], re.MULTILINE)
    assert lint is not None
    (version,) = versions(lint[1], "python-version")
    assert version == PROJECT["tool"]["mypy"]["python_version"]
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + version.replace(".", "")


def test_node_is_one_that_the_extension_is_built_with():
    install = (ROOT / "tools" / "editors" / "install-node").read_text()
    oldest = int(re.search(r"^oldest=(\d+)$", install, re.MULTILINE)[1])
    found = [version for text in TEXTS.values() for version in versions(text, "node-version")]
    assert found and all(int(version.split(".")[0]) >= oldest for version in found)


def test_files_that_steps_read_and_keep():
    for text in TEXTS.values():
        for path in values(text, "cache-dependency-path"):
            assert (ROOT / path).is_file()
    kept = [path for text in TEXTS.values() for path in values(text, "path")]
    makers = [(ROOT / path).read_text("utf-8") for path in ("Makefile", "tools/make-extension")]
    for path in kept:
        folder, suffix = path.rsplit("/*", 1)
        assert any(re.search(rf"{folder}/\S+{re.escape(suffix)}", text) for text in makers), path


def test_pytest_takes_the_options_that_the_workflow_adds():
    """A misspelt one, or one of a package that is no longer installed, would end the run before its first test."""
    (options,) = values(TEXTS["tests.yml"], "PYTEST_ADDOPTS")
    environment = {"PYTEST_ADDOPTS": options.split(" #")[0], "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "pytest", "--collect-only", "tests/test_speedup.py"]
    collected = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert collected.returncode == 0, collected.stdout + collected.stderr
