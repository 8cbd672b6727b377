"""What is told of a source without running it: its syntax errors, and that it has no example inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp.analysis import may_have_inputs, unparsed

PATH = Path("net.py")
NET = "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize("text", [NET + "\nclass A(:\n", NET.replace("x):", "x)"), NET + "\nx = (1,\n"])
def test_a_syntax_error_is_told(text: str) -> None:
    error = unparsed(text, PATH)
    assert error is not None and "does not parse at line" in str(error)


def test_what_a_newer_python_parses_is_left_to_it() -> None:
    """3.11 refuses both; the interpreter of the worker may be a later one."""
    assert unparsed(NET + 'TEXT = f"{NAMES["a"]}"\n', PATH) is None
    assert unparsed(NET + "type Pair[T] = tuple[T, T]\n", PATH) is None


@pytest.mark.parametrize(
    ("more", "class_name", "may"),
    [
        ("", "Net", False),
        ("def get_inputs_Other():\n    return []\n", "Net", False),
        ("def get_init_inputs():\n    return []\n", "Net", False),
        ("def get_inputs():\n    return []\n", "Net", True),
        ("from shapes import get_inputs_Net\n", "Net", True),
        ("from shapes import *\n", "Net", True),
        ('globals()[f"get_inputs_{Net.__name__}"] = lambda: []\n', "Net", True),
        ("def get_inputs_Outer_Net():\n    return []\n", "Outer.Net", True),
        ("def get_inputs_Net():\n    return []\n", "Outer.Net", True),
    ],
)
def test_whether_a_file_may_have_inputs(more: str, class_name: str, may: bool) -> None:
    assert may_have_inputs(NET + more, class_name) is may


@pytest.mark.parametrize(
    ("more", "may"),
    [
        ("def get_inputs():\n    return []\n", False),
        ("from shapes import *\ndef get_inputs():\n    return []\n", False),
        ("def get_inputs():\n    return []\ndef get_inputs_Net():\n    return []\n", True),
    ],
)
def test_inputs_of_the_file_that_are_for_another_class(more: str, may: bool) -> None:
    assert may_have_inputs(NET + more, "Net", shared=False) is may
