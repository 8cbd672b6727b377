"""What an argument names: files, folders and classes, and what is said of one that names nothing."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from kernel_lsp import cli, errors
from kernel_lsp.analysis import not_found
from kernel_lsp.commands.generate import tasks_for
from kernel_lsp.commands.targets import one_class
from kernel_lsp.errors import surface
from tests import nursery

MISH = """import torch


class Mish(torch.nn.Module):
    class Inner(torch.nn.Module):
        def forward(self, x):
            return x

    def forward(self, x):
        return x
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "blocks.py").write_text(MISH)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("pkg/blocks.py:Mish", "; did you mean pkg/blocks.py::Mish?"),
        ("pkg.blocks.Mish", "; did you mean pkg/blocks.py::Mish?"),
        ("pkg.blocks.Mish.Inner", "; did you mean pkg/blocks.py::Mish.Inner?"),
        ("pkg.blocks", "; did you mean pkg/blocks.py?"),
        ("pkg/block.py::Mish", "; did you mean pkg/blocks.py::Mish?"),
        ("pgk", "; did you mean pkg?"),
        ("nothing/like/it.py::Mish", "There is no file or folder nothing/like/it.py. Check the name."),
    ],
)
def test_a_target_that_is_not_there(project: Path, capsys: pytest.CaptureFixture[str], target: str, says: str) -> None:
    assert cli.main(["generate", target]) == 2
    said = capsys.readouterr().err
    assert says in said and len(said.splitlines()) == 1


@pytest.mark.parametrize("command", ["validate", "explain"])
def test_other_commands_say_it_too(project: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert cli.main([command, "pkg/block.py::Mish"]) == 2
    assert "did you mean pkg/blocks.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "target", "says"),
    [
        ("explain", "pkg/blocks.py:Mish", "; did you mean pkg/blocks.py::Mish?"),
        ("explain", "pkg.blocks.Mish", "; did you mean pkg/blocks.py::Mish?"),
        (
            "explain",
            "pkg/blocks.py",
            "pkg/blocks.py names no class. Write FILE::CLASS, for instance pkg/blocks.py::Mish.",
        ),
        ("explain", "pkg::Mish", "pkg::Mish names no class. Write FILE::CLASS, for instance model.py::RMSNorm."),
        ("explain", "::Mish", "::Mish names no class. Write FILE::CLASS, for instance model.py::RMSNorm."),
        ("history", "::Mish", "::Mish names no class. Write FILE::CLASS, for instance model.py::RMSNorm."),
        ("explain", "pkg", "pkg names no class. Write FILE::CLASS, for instance model.py::RMSNorm."),
        ("history", "pkg/blocks.py:Mish", "; did you mean pkg/blocks.py::Mish?"),
        ("history", "pkg.blocks.Mish", "; did you mean pkg/blocks.py::Mish?"),
        ("history", "pkg/blocks.py::Mich", "No class Mich in pkg/blocks.py; did you mean Mish?"),
    ],
)
def test_a_command_for_one_class_says_what_was_meant(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    target: str,
    says: str,
) -> None:
    monkeypatch.setenv("KERNEL_LSP_STORE", str(project / "store.sqlite"))
    assert cli.main([command, target]) == 2
    said = capsys.readouterr()
    assert says in " ".join(said.err.split()) and "usage" not in said.err and not said.out


def test_a_file_without_a_module_class(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "plain.py").write_text("x = 1\n")
    assert cli.main(["generate", "plain.py"]) == 2
    assert "plain.pyhasnoclassthatderivesfromtorch.nn.Module." in "".join(capsys.readouterr().out.split())


def test_a_syntax_error_has_pythons_line_and_message(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No class is found, for what stands before it hides it."""
    (project / "syntax.py").write_text('import torch\nx = """\nclass Broken(torch.nn.Module):\n    pass\n')
    for target in ("syntax.py::Broken", "syntax.py"):
        assert cli.main(["generate", target]) == 2
        said = "".join(capsys.readouterr().out.split())  # a long path is broken anywhere
        assert "syntax.pydoesnotparseatline2:unterminatedtriple-quotedstringliteral" in said
        assert "Noclass" not in said


@pytest.mark.parametrize(("name", "near"), [("Mich", "Mish"), ("mish", "Mish"), ("Inner", "Mish.Inner")])
def test_a_class_that_is_not_there_names_the_nearest(name: str, near: str) -> None:
    error = not_found(MISH, Path("blocks.py"), name)
    assert str(error).startswith(f"No class {name} in blocks.py; did you mean {near}?")


def test_messages_name_options_and_pyproject_on_the_command_line() -> None:
    """An option of the command that runs where it has one, else the line of pyproject.toml; no settings of an editor."""
    error = errors.from_json(errors.NoSuchDevice(device="cuda:7", interpreter="python", detail="none").to_json())
    assert "kernelLsp.device" in str(error)
    with surface.command_line(["device", "generator", "overwrite"]):
        on_command_line(error)
    assert "kernelLsp.device" in str(error)


def on_command_line(error: errors.UserError) -> None:
    assert "Set --device to auto or interpreter" in str(error) and "kernelLsp" not in str(error)
    assert "(worker-prefix under [tool.kernel-lsp] in pyproject.toml)" in str(error)
    assert error.to_json()["message"] == str(error)
    assert "(--generator)" in str(errors.GeneratorUnknown(name="x", known="y"))
    assert "base-url under [tool.kernel-lsp.openai] in pyproject.toml" in str(errors.ModelServerNotNamed())
    assert "run the command again with --overwrite" in str(errors.KernelFileEdited(path="k.py"))
    no_inputs = str(errors.NoExampleInputs(class_name="Outer.Inner"))
    assert "code action" not in no_inputs and "get_inputs_Outer_Inner()" in no_inputs


def test_messages_name_files_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside, outside = errors.SyntaxInvalid, f"{tmp_path}-other/a.py"
    program = tmp_path / "python"
    program.touch(mode=0o755)
    with surface.command_line([]):
        run = str(errors.GitFailed(command="log", path=str(program), detail=f"run: {program} -m pip"))
        assert f"run: {program} -m pip" in run, "without its folder another program would run"
        assert str(inside(path=f"{tmp_path}/net/a b.py", line=3, detail="x")).startswith("net/a b.py does not parse at")
        assert str(inside(path=outside, line=3, detail="x")).startswith(outside)
        assert f"in {tmp_path}" in str(errors.GitFailed(command="log", path=str(tmp_path), detail="no"))
        assert inside(path=f"{tmp_path}/a.py", line=3, detail="x").to_json()["where"]["path"] == f"{tmp_path}/a.py"
    assert f"{tmp_path}/a.py" in str(inside(path=f"{tmp_path}/a.py", line=3, detail="x"))


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell: str) -> None:
    command = [sys.executable, "-m", "kernel_lsp", "completion", shell]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "generate" in done.stdout and "--changed-since" in done.stdout
    if shell == "bash":
        tried = subprocess.run(["bash", "-n"], input=done.stdout, capture_output=True, text=True, check=False)
        assert tried.returncode == 0, tried.stderr


def test_serve_in_a_terminal_says_what_it_waits_for() -> None:
    child, terminal = pty.fork()
    if child == 0:
        # A shell that starts the tests in the background has them ignore it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, "-m", "kernel_lsp", "serve"])
    said, deadline = b"", time.monotonic() + 60
    while b"Ctrl-C" not in said and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1.0)[0]:
            said += os.read(terminal, 4096)
    os.kill(child, signal.SIGINT)
    status = None
    while status is None and time.monotonic() < deadline + 10:
        if select.select([terminal], [], [], 0.05)[0]:
            with contextlib.suppress(OSError):  # the other end is closed
                said += os.read(terminal, 4096)
        ended, found = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(found) if ended else None
    if status is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    while select.select([terminal], [], [], 0)[0]:
        try:
            said += os.read(terminal, 4096)
        except OSError:
            break
    os.close(terminal)
    assert status == 130, "Ctrl-C did not end it"
    assert b"waits for an editor" in said and b"Traceback" not in said


NO_INPUTS = """import torch


class Scaled(torch.nn.Module):
    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor):
        return x * self.factor
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_class_without_inputs(project: Path) -> None:
    """A stub that works for a class that is named; skipped in a folder, where the class was not named."""
    pytest.importorskip("triton", reason="the worker needs triton")
    (project / "pyproject.toml").write_text("")
    file = project / "net" / "scaled.py"
    file.parent.mkdir()
    file.write_text(NO_INPUTS)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*nursery.CLI, "generate", *arguments, "--device", "interpreter", "--no-write"]
        return subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=project, check=False)

    done = run("net/scaled.py::Scaled")
    assert done.returncode == 2, done.stderr
    assert "code action" not in done.stdout and '[tool.kernel-lsp.inputs."net/scaled.py::Scaled"]' in done.stdout
    stub = done.stdout[done.stdout.index("def get_inputs_Scaled") : done.stdout.index("Or in pyproject.toml")]

    done = run("net")
    assert done.returncode == 0, done.stderr
    assert "skipped" in done.stdout and "no kernel" not in done.stdout
    assert run("net", "--strict").returncode == 2

    file.write_text(f"{NO_INPUTS}\n\n{stub}")
    done = run("net/scaled.py::Scaled")
    assert done.returncode == 0, done.stdout


PARTS = """import torch


class Norm(torch.nn.Module):
    def forward(self, x):
        return x / x.norm()


class Gate(torch.nn.Module):
    def forward(self, x):
        return x * x.sigmoid()


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.Sequential(Norm(), Gate())

    def forward(self, x):
        return self.parts(x)
"""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (PARTS.split("class Gate")[0], "Norm"),
        (PARTS, None),
        (PARTS + "\n\ndef get_inputs_Gate():\n    return [torch.ones(2)]\n", "Gate"),
        (PARTS + "\n\ndef get_inputs():\n    return [torch.ones(2)]\n", "Block"),  # which the others are parts of
        (PARTS.replace("Norm(), ", "") + "\n\ndef get_inputs():\n    return [torch.ones(2)]\n", None),
    ],
)
def test_a_file_means_its_only_class(
    text: str, meant: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the only one that has example inputs and is no part of another."""
    monkeypatch.chdir(tmp_path)
    Path("block.py").write_text(text)
    if meant is None:
        assert cli.main(["explain", "block.py"]) == 2
        assert "block.py names no class." in capsys.readouterr().err
    else:
        assert one_class("block.py") == (Path("block.py"), meant)


def test_explain_takes_the_only_class_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("norm.py").write_text(PARTS.split("class Gate")[0])
    assert cli.main(["explain", "norm.py"]) == 2  # it has no inputs
    said = capsys.readouterr()
    assert "No example inputs for Norm." in said.err and "def get_inputs_Norm" in said.out


def test_the_form_for_pyproject_where_an_object_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the inputs where the constructor takes a configuration, and a line says why it is not there where forward does."""
    monkeypatch.chdir(tmp_path)
    text = "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self, config):\n        self.size = config.size\n\n"
    Path("net.py").write_text(text + "    def forward(self, x):\n        return x * self.size\n")
    assert cli.main(["generate", "net.py"]) == 2
    said = capsys.readouterr().out
    assert "types.SimpleNamespace(" in said
    assert "beside get_init_inputs_Net(): a table cannot hold config, which is an object." in said
    table = tomllib.loads(said.partition("object.\n")[2])["tool"]["kernel-lsp"]["inputs"]["net.py::Net"]
    assert table == {"args": ["float32[8, 64]"]}
    head = "from transformers import Cache\n"
    Path("net.py").write_text(head + text + "    def forward(self, x, cache: Cache):\n        return x\n")
    assert cli.main(["generate", "net.py"]) == 2
    said = capsys.readouterr().out
    assert "There is no form for pyproject.toml: a table cannot hold config and cache, which are objects." in said
    assert "[tool.kernel-lsp" not in said


def test_parts_of_another_class_without_inputs_share_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And do not count; a class that none instantiates does. With --strict all of them do."""
    monkeypatch.chdir(tmp_path)
    Path("block.py").write_text(PARTS)
    assert cli.main(["generate", "block.py"]) == 2
    said = capsys.readouterr().out
    assert said.startswith("✗ Block: No example inputs for Block.") and "get_inputs_Norm" not in said
    assert "2 classes without example inputs, parts of others: Norm, Gate." in said
    assert "For a stub: kernel-lsp generate block.py::Norm" in said
    tasks = tasks_for("block.py", write=False)
    for task in tasks:
        task.error = errors.NoExampleInputs(class_name=task.name)
    assert [task.status() for task in tasks] == [0, 0, 2]
    assert cli.main(["generate", ".", "--html", "page.html"]) == 0
    said = capsys.readouterr().out
    assert "parts of others: Norm, Gate.\n" in said
    assert "For a stub of a class's example inputs: kernel-lsp generate block.py::Block" in said
    assert "Norm</h" not in Path("page.html").read_text("utf-8")
    assert cli.main(["generate", "block.py", "--strict"]) == 2
    said = capsys.readouterr().out
    assert "✗ Norm: No example inputs" in said and "✗ Gate: No example inputs" in said
    assert cli.main(["generate", "block.py::Norm"]) == 2
    assert "def get_inputs_Norm" in capsys.readouterr().out


WHOLE = """import torch


class Norm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return torch.nn.functional.layer_norm(x, self.weight.shape, self.weight)


class Gate(torch.nn.Module):
    def forward(self, x):
        return x * x.sigmoid()


class Mix(torch.nn.Module):
    def forward(self, x, y):
        return x + y


class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm, self.gate, self.mix = Norm(2 * size), Gate(), Mix()

    def forward(self, x):
        return self.mix(self.gate(self.norm(torch.cat([x, x], -1))), 1.0)


def get_inputs():
    return [torch.ones(2, 8)]


def get_init_inputs():
    return [8]
"""


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a class and its parts, and the example inputs of the class alone."""
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    Path("block.py").write_text(WHOLE)
    return Path("block.py")


GENERATE = ["generate", "--device", "interpreter", "--no-write"]


def test_the_inputs_of_a_file_are_not_tried_for_parts(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether they would fit, as of Gate, or not."""
    assert cli.main([*GENERATE, "block.py"]) == 0
    said = capsys.readouterr().out
    assert "3 classes without example inputs, parts of others: Norm, Gate, Mix." in said and "✗" not in said
    whole.write_text(WHOLE.replace("return self.mix", "raise ValueError\n        return self.mix"))  # which is quicker
    assert cli.main([*GENERATE, ".", "--strict"]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "No example inputs for Norm, a part of Block: get_inputs() is for Block. Add get_inputs_Norm()" in said


def test_a_part_that_is_named_is_tried(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And told whose inputs there are where they do not fit; what pyproject.toml has for it goes first."""
    assert cli.main([*GENERATE, "block.py::Gate"]) == 0
    assert cli.main([*GENERATE, "block.py::Norm"]) == 0  # they fit: it takes any size
    capsys.readouterr()
    whole.write_text(WHOLE.replace("[torch.ones(2, 8)]", "[torch.ones(2, 7)]"))
    for name, why in (
        ("Norm", "RuntimeError: Given normalized_shape=[8]"),
        ("Mix", "its forward takes other arguments"),
    ):
        assert cli.main([*GENERATE, f"block.py::{name}"]) == 2
        said = " ".join(capsys.readouterr().out.split())
        assert f"{name}, a part of Block: get_inputs() is for Block, and does not fit {name} ({why}" in said
        assert f"def get_inputs_{name}" in said
    Path("pyproject.toml").write_text(
        '[tool.kernel-lsp.inputs."block.py::Norm"]\ninit = [16]\nargs = ["float32[3, 16]"]\n'
    )
    assert cli.main([*GENERATE, "block.py::Norm"]) == 0


@pytest.mark.parametrize("name", ["pyproject.toml", "model.pt", "README.md", "model.pt::Net"])
def test_a_file_of_another_kind_is_called_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(name.partition("::")[0])
    file.write_bytes(b"\x80\x02\xff" if file.suffix == ".pt" else b"[project]\nname = 'p'\n")
    assert cli.main(["generate", name]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert f"{file} is not a Python file. Name a file (model.py) or a class in it (model.py::RMSNorm)" in said
    assert cli.main(["validate", str(file)]) == 2
    assert f"{file} is not a Python file. Name a kernel file (" in " ".join(capsys.readouterr().out.split())


def test_a_file_that_has_a_class_is_taken_whatever_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "norm.txt").write_text(PARTS)
    assert [task.name.rpartition("::")[2] for task in tasks_for(str(tmp_path / "norm.txt"), write=False)] == [
        "Norm",
        "Gate",
        "Block",
    ]
