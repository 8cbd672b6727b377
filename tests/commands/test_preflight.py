"""What would fail for every class is said once, before any work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernel_lsp import cli
from tests.checking.scratch import write_kernel, write_module

CLASSES = "import torch\n\n" + "".join(
    f"class C{i}(torch.nn.Module):\n    def forward(self, x):\n        return x\n\n" for i in range(3)
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "classes.py").write_text(CLASSES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1, captured.err
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--device", "cudaa"], "The setting device = 'cudaa' is not valid"),
        (["--generator", "oracle"], "There is no generator oracle."),
        (["--html", "reports/page.html"], "reports/page.html: there is no folder reports."),
        (["--svg", "reports/table.svg"], "reports/table.svg: there is no folder reports."),
    ],
)
def test_an_option(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert says in said(capsys, "generate", "model", *arguments)
    assert not (folder / "reports").exists()


def test_a_device_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("triton", reason="the worker needs triton")
    text = said(capsys, "generate", "model", "--device", "cuda:97")
    assert "There is no device cuda:97" in text and "Set --device to auto or interpreter" in text


def test_a_kernel_folder_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model" / "kernels").write_text("a file")
    text = said(capsys, "generate", "model")
    assert "Kernel files go to the folder model/kernels, and model/kernels is a file. Move it" in text
    assert "set kernel-folder under [tool.kernel-lsp] in pyproject.toml" in text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[tool.kernel-lsp]\ngenerator = ['synthesizer']\n", "did you mean generators?"),
        ("[tool.kernel-lsp]\nseconds = 'long'\n", "The setting seconds = 'long' is not valid"),
        ("[tool.kernel_lsp]\n", "[tool.kernel_lsp]"),
        ("[tool.kernel-lsp\n", "pyproject.toml"),
    ],
)
@pytest.mark.parametrize("command", [["generate"], ["generate", "--json"], ["explain"]])
def test_a_mistake_in_pyproject(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, says: str, command: list[str]
) -> None:
    (folder / "pyproject.toml").write_text(line)
    assert cli.main([*command, "model/classes.py::C0"]) == 2
    captured = capsys.readouterr()
    assert says in captured.err and len(captured.err.splitlines()) == 1
    if "--json" in command:
        assert says in json.loads(captured.out)["error"]["message"]


def test_each_mistake_in_pyproject_is_said_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pyproject.toml").write_text("[tool.kernel-lsp]\nsecond = 3\nsamples = 'many'\ndevice = 'tpu'\n")
    assert cli.main(["generate", "model"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert sorted(line.partition("setting ")[2].split(" ")[0] for line in lines) == ["device", "samples", "second"]


@pytest.mark.parametrize("command", ["check", "validate"])
def test_no_kernel_is_validated_where_pyproject_has_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    write_module(tmp_path / "half.py", "Half", "x * 0.5")
    write_kernel(tmp_path / "half.py", "Half")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.kernel-lsp]\nsecond = 3\n")
    assert cli.main([command, "kernels/half_triton.py"]) == 2
    captured = capsys.readouterr()
    assert "did you mean seconds?" in captured.err and "Half" not in captured.out


def test_as_json_it_is_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["generate", "model", "--generator", "oracle", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "GeneratorUnknown"


def test_the_place_of_a_page_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["generate", "model/classes.py::Nothing", "--html", "page.html"]) == 2
    assert "The report is page.html." in capsys.readouterr().out
    assert (folder / "page.html").exists()


def test_an_error_stands_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No line says before it that there is no verdict."""
    assert cli.main(["generate", "model/classes.py::C0"]) == 2
    captured = capsys.readouterr()
    assert captured.err == "" and captured.out.startswith("✗ C0: No example inputs for C0.")


def test_a_recording_without_a_folder_runs_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = ["python", "-c", "open('ran', 'w')"]
    text = said(capsys, "record", "--output", "nowhere/run.json", "--", *program)
    assert "nowhere/run.json: there is no folder nowhere." in text
    assert not (folder / "nowhere").exists() and not (folder / "ran").exists()
