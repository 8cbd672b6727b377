"""What the host function checks of its indices: called for real, and read as text."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from tests.synthesis.printing.test_source import ruff


class Positions(nn.Module):
    """Positions follow from a size alone; token ids are looked at, a part of them."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(12, 16), nn.Embedding(64, 16)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.words(ids[:, 1:]) + self.places(torch.arange(ids.shape[1] - 1))


class Fixed(nn.Module):
    """Positions that are always in range."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Embedding(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.places(torch.arange(16))


class Loss(nn.Module):
    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.nll_loss(x, target, ignore_index=3)


class Moved(nn.Module):
    """Ids in another order, each once: all of them are looked at as they lie."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(12, 16)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.words(ids.roll(2, 1).flip(0).t())


class Skipping(Moved):
    """Some ids are never read: what is looked at are the ones that are, gathered first."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.words(ids.unfold(1, 2, 3)) + self.words(ids.diagonal())[:, None, None][:1]


class Padded(Moved):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.words(F.pad(ids, (1, 1), value=11))


IDS, SCORES = torch.randint(0, 12, (4, 9)), torch.randn(6, 10)


def generated(module: nn.Module, args: tuple[Any, ...], folder: Path) -> tuple[str, Any]:
    """The text of the kernel file, and the file as a module."""
    name = type(module).__name__
    exported = capture(module.eval(), args)
    made = synthesize(module, exported, class_name=name, import_from=__name__, check_indices=True)[0].source
    path = folder / f"{name.lower()}_checked.py"
    path.write_text(made)
    assert ruff("format", path).returncode == 0
    found = ruff("check", "--select=F,E7,E9,B,SIM118", path)
    assert found.returncode == 0, found.stdout
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        spec.loader.exec_module(loaded)
    return path.read_text(), loaded


def test_an_index_out_of_range_raises_before_any_launch(tmp_path: Path) -> None:
    text, loaded = generated(Positions(), (IDS,), tmp_path)
    assert '_check_indices("ids", ids[:, 1:], 12)' in text
    kernel = loaded.PositionsTriton().eval().requires_grad_(False)
    wrong = IDS.clone()
    wrong[-1, -1] = 12
    with pytest.raises(IndexError, match="ids holds the index 12, which is out of range for size 12"):
        kernel(wrong)
    wrong[-1, -1] = -1
    with pytest.raises(IndexError, match="ids holds the index -1"):
        kernel(wrong)
    with pytest.raises(IndexError, match="index out of range in self"):  # eager's own
        kernel(torch.zeros(4, 70, dtype=torch.int64))


def test_what_follows_from_sizes_alone_is_not_looked_at(tmp_path: Path) -> None:
    text, _ = generated(Fixed(), (torch.randn(4, 16, 8),), tmp_path)
    assert "IndexError" not in text and "_check_indices" not in text


def test_an_ignored_target_is_no_error(tmp_path: Path) -> None:
    _, loaded = generated(Loss(), (SCORES, torch.randint(0, 10, (6,))), tmp_path)
    loaded._check_indices("target", torch.tensor([0, 9]), 10)
    kernel = loaded.LossTriton().eval()
    with pytest.raises(IndexError, match="target holds the index 11"):
        kernel(SCORES, torch.tensor([0, 3, 9, 3, 11, 0]))
    loaded._check_indices("nothing", torch.empty(0, dtype=torch.int64), 10)


def test_all_indices_are_looked_at_where_they_lie_if_all_are_read(tmp_path: Path) -> None:
    text, _ = generated(Moved(), (IDS,), tmp_path)
    assert '_check_indices("ids", ids, 12)' in text


@pytest.mark.parametrize("kind", [Skipping, Padded])
def test_indices_of_a_part_are_gathered_before_they_are_looked_at(kind: type[nn.Module], tmp_path: Path) -> None:
    text, _ = generated(kind(), (IDS,), tmp_path)
    assert '_check_indices("indices", indices, 12)' in text
    assert '_check_indices("ids"' not in text


class Enlarged(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="bilinear")


def test_places_that_are_held_between_two_ends_are_not_looked_at(tmp_path: Path) -> None:
    text, _ = generated(Enlarged(), (torch.randn(2, 3, 4, 5),), tmp_path)
    assert "IndexError" not in text and "_check_indices" not in text
