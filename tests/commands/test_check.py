"""``kernel-lsp check`` as CI runs it: real repositories, real validations, several kernels in each run."""

import json
import re
import shlex
import subprocess
import types
from pathlib import Path

import pytest

from kernel_lsp import cli, schema
from kernel_lsp.commands import validate
from kernel_lsp.commands.run_jobs import Task
from tests import nursery
from tests.checking.scratch import write_kernel, write_module
from tests.repository import commit

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*nursery.CLI, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=cwd, check=False)


def files_of(folder: Path) -> dict[str, bytes]:
    """All but the bytecode that Python keeps of what it imports."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Four kernels; since the commit one class computes something else, one was only written otherwise, one is gone."""
    project = tmp_path / "project"
    for name in ("Same", "Wrong", "Rewritten", "Gone"):
        write_module(project / f"{name.lower()}.py", name, "x * 0.5")
        write_kernel(project / f"{name.lower()}.py", name)
    commit(project)
    write_module(project / "wrong.py", "Wrong", "x * 0.25")
    write_module(project / "rewritten.py", "Rewritten", "x * (1 / 2)")
    write_module(project / "gone.py", "Other", "x * 0.5")
    return project


def test_what_changed_is_validated_and_nothing_is_written(project: Path, tmp_path: Path) -> None:
    before = files_of(project)
    output = tmp_path / "check.sarif"
    options = ("--changed-since", "main", "--format", "sarif", "--output", output)
    done = run("check", "--device", "interpreter", *options, cwd=project)
    assert done.returncode == 1, done.stderr
    assert files_of(project) == before

    found = {}
    for result in json.loads(output.read_text())["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        found[place["artifactLocation"]["uri"], result["ruleId"]] = result["level"]
    assert found == {
        ("wrong.py", "kernel-outdated"): "error",
        ("rewritten.py", "kernel-stale"): "warning",
        ("gone.py", "cannot-validate"): "error",
    }
    assert "; regressions not measured for 2. 1 did not change since main." in done.stdout
    assert done.stdout.count("no CUDA GPU here") == 1
    assert "record that with: kernel-lsp validate --write kernels/rewritten_triton.py" in done.stdout
    assert "wrong.py:5: Generate it again: kernel-lsp generate wrong.py::Wrong" in done.stdout
    outdated = "Wrong, or something it uses, changed since its kernel was written, and the kernel does not fit any more"
    assert outdated in " ".join(done.stdout.split())
    assert "↻ Wrong: " in done.stdout and "out of date" in done.stdout and "1 kernel-outdated" in done.stdout
    assert "kernel-wrong" not in done.stdout
    said = " ".join(done.stdout.split())
    assert "kernels/gone_triton.py is the kernel of Gone, and gone.py has no such class any more." in said
    assert "generate the kernel of gone.py again; delete this one." in said


def test_validate_says_what_to_do_below_its_table(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found_wrong(tasks: list[Task], *_: object, **__: object) -> bool:
        for task in tasks:
            report = schema.Report(schema.Target((project / "wrong.py").as_uri(), "Wrong"))
            report.candidates = [schema.Validated(schema.Candidate("", "synthesizer"), schema.Verdict("wrong"))]
            task.job = types.SimpleNamespace(report=report, state="done", error=None)
        return True

    monkeypatch.setattr("kernel_lsp.commands.validate.run_tasks", found_wrong)
    monkeypatch.chdir(project)
    assert cli.main(["validate", "kernels/wrong_triton.py"]) == 1
    said = capsys.readouterr().out
    assert "wrong.py:5: Generate it again: kernel-lsp generate wrong.py::Wrong" in said
    assert "wrong.py:5: Wrong, or something it uses, changed since its kernel was validated." in said


def test_files_that_cannot_be_validated_are_told_once_each(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is a kernel, or none was looked for: "no kernel" would say that none was found."""
    monkeypatch.setattr("kernel_lsp.commands.run_jobs.preflight.check_settings", lambda *_, **__: None)
    monkeypatch.chdir(project)
    for name in ("one.py", "two.py"):
        (project / name).write_text("pass\n")
    assert cli.main(["validate", "one.py", "two.py"]) == 2
    said = capsys.readouterr()
    assert said.err.splitlines() == ["[1/2] one.py: not validated", "[2/2] two.py: not validated"]
    assert "no kernel" not in said.out and "✗ one.py is a source file without kernel files" in said.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "There is no file or folder nowhere. Check the name."),
        (["kernel"], "There is no file or folder kernel; did you mean kernels?"),
        (["kernels/wrong_tritn.py"], "did you mean kernels/wrong_triton.py?"),
        (["--changed-since", "mian"], "no commit 'mian'; did you mean main?"),
        (["--fail-on", "wrong,stlae"], "'stlae' is none of wrong, stale, regressed, slower; did you mean stale?"),
        (["--json", "--format", "sarif"], "not allowed with argument"),
        (["--json", "--output", "wrong.py/check.json"], "could not be written"),
    ],
)
def test_what_cannot_be_begun_exits_with_2_and_says_why(project: Path, arguments: list[str], says: str) -> None:
    done = run("check", *arguments, cwd=project)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
    assert not done.stdout or "error" in json.loads(done.stdout)


def test_a_run_that_cannot_begin_leaves_a_document_all_the_same(project: Path, tmp_path: Path) -> None:
    said = "::error title=kernel-lsp::There is no file or folder nowhere. Check the name.\n"
    assert run("check", "nowhere", "--format", "github", cwd=project).stdout == said
    output = tmp_path / "check.sarif"
    done = run("check", "nowhere", "--format", "sarif", "--output", output, cwd=project)
    assert done.returncode == 2 and done.stdout == ""
    (invocation,) = json.loads(output.read_text())["runs"][0]["invocations"]
    assert invocation["exitCode"] == 2 and not invocation["executionSuccessful"]
    assert "There is no file or folder nowhere" in json.dumps(invocation)


def test_the_commands_in_the_hook_and_in_the_documentation_are_accepted() -> None:
    texts = [(ROOT / name).read_text("utf-8") for name in (".pre-commit-hooks.yaml", "docs/ci.md", "README.md")]
    found = [line for text in texts for line in re.findall(r"kernel-lsp ((?:check|validate)\b[^\n#`;]*)", text)]
    commands = [line for line in found if "[" not in line]  # not a synopsis
    assert len(commands) > 8 and "check --changed-since HEAD" in commands
    for line in commands:
        cli._parser().parse_args(shlex.split(line))


def test_a_source_file_stands_for_its_kernels(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    kernel = validate.selected([Path("same.py")])
    assert [str(path) for path in kernel] == ["kernels/same_triton.py"]
    (project / "without.py").write_text("x = 1\n")
    assert validate.selected([Path("without.py"), *kernel, Path("same.py")]) == [Path("without.py"), *kernel]
