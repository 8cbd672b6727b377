"""A folder of the user's own: only what has example inputs is a problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp import errors
from kernel_lsp.suites import folder

MODULE = "import torch\n\n\nclass {name}(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


def test_only_classes_with_example_inputs(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    shared = MODULE.format(name="A") + "\n\ndef get_inputs():\n    return [torch.ones(2)]\n"
    (tmp_path / "inner" / "shared.py").write_text(shared)
    own = MODULE.format(name="B") + MODULE.format(name="C") + "\n\ndef get_inputs_C():\n    return [torch.ones(2)]\n"
    (tmp_path / "own.py").write_text(own)
    (tmp_path / "table.py").write_text(MODULE.format(name="D"))
    (tmp_path / "none.py").write_text(MODULE.format(name="E"))
    (tmp_path / "imported.py").write_text("from own import B\n\ndef get_inputs_B():\n    return []\n")
    whole = MODULE.format(name="F").replace("return x", "return A()(x)")
    (tmp_path / "whole.py").write_text(whole + shared)
    (tmp_path / "broken.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "pyproject.toml").write_text('[tool.kernel-lsp.inputs."table.py::D"]\nargs = ["float32[2]"]\n')
    found = folder.read([tmp_path])
    assert [one.problem.id for one in found] == [
        "imported.py::B",
        "own.py::C",
        "table.py::D",
        "whole.py::F",
        "inner/shared.py::A",
    ]
    assert {one.problem.suite for one in found} == {"folder"}
    assert found[-1].file == tmp_path / "inner" / "shared.py" and found[-1].problem.path == "inner/shared.py"


def test_two_folders_with_files_of_one_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(MODULE.format(name="A") + "\n\ndef get_inputs():\n    return []\n")
    found = folder.read([tmp_path / "one", tmp_path / "two"])
    assert [one.problem.id for one in found] == ["one/a.py::A", "two/a.py::A"]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(errors.SuiteEmpty, match="get_inputs"):
        folder.read([tmp_path])
    with pytest.raises(errors.SuiteFolderMissing):
        folder.read([tmp_path / "nowhere"])


def test_what_is_passed_over_is_told(tmp_path: Path) -> None:
    given = MODULE.format(name="A") + "\n\ndef get_inputs():\n    return []\n"
    (tmp_path / "a.py").write_text(given)
    (tmp_path / "hidden.py").write_text(given.replace("(self, x)", "(self, x").replace("class A(", "class A(("))
    (tmp_path / "no_inputs.py").write_text("class B(:\n")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    told = [str(error) for error in folder.left_out([tmp_path])]
    assert len(told) == 2 and told[0].startswith(
        f"{tmp_path / 'binary.py'} could not be read: it is not UTF-8 (byte 0)"
    )
    assert told[1].startswith(f"{tmp_path / 'hidden.py'} does not parse at line 4")
