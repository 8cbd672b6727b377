"""Messages name the line of a statement in a function that forward calls, not the line of the call."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.operators.untraceable import Untraceable

X = torch.randn(3, 4)
OTHER = """\
def positive(x):
    x = x * 2
    return x[x > 0]
"""


def _positive(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]  # in a function


class InFunction(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = _positive(x)
        return y * 2


class InMethod(nn.Module):
    def _positive(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)[x > 0]  # in a method

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[:, 0] = 1.0  # changed in place: the graph is traced twice
        return self._positive(x)


class ThroughAView(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.transpose(0, 1).mul_(2.0)  # of an input
        return x + 1


class InOtherFile(nn.Module):
    def __init__(self, file: Path) -> None:
        super().__init__()
        spec = importlib.util.spec_from_file_location("other", file)
        assert spec is not None and spec.loader is not None
        self.other = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.other)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other.positive(x)  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: object) -> nn.Module:
        return self


def _stopped(module: nn.Module) -> Untraceable:
    with pytest.raises(Untraceable) as caught:
        lower(capture(module, (X,)))
    return caught.value


def _line_of(comment: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


@pytest.mark.parametrize(
    ("module", "comment"),
    [
        (InFunction, "in a function"),
        (InMethod, "in a method"),
        (ThroughAView, "of an input"),
    ],
)
def test_the_line_is_that_of_the_statement(module: type[nn.Module], comment: str) -> None:
    found, line = _stopped(module()), _line_of(comment)
    assert found.place == (inspect.getsourcefile(module), line)
    assert f"line {line})" in found.detail


def test_a_statement_in_another_file_is_named_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "other.py"
    file.write_text(OTHER)
    found = _stopped(InOtherFile(file))
    assert found.place == (str(file), 3)
    assert "(`return x[x > 0]`, line 3 of other.py)" in found.detail
