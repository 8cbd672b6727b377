"""Sizes that eager refuses lie outside the envelope, where the operator's lowering would take them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.errors import NotWritable
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


class Wide(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (2, 2), mode="circular") * 2.0


class Mirrored(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (2, 2), mode="reflect") * 2.0


class MirroredByOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (1, 0), mode="reflect") * 2.0


class MirroredPlane(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 1, 1, padding_mode="reflect")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


class MirroredVolume(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (1, 1, 0, 0, 0, 1), mode="reflect") * 2.0


class MirroredAndCut(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (1, -1), mode="reflect").mean(-1)


class MirroredTogether(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(torch.cat([x.amax(1), x.amax(2)], 1), (3, 3), mode="reflect")


class MirroredByRows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (0, x.shape[1] - 3), mode="reflect") * 2.0


class WidePlane(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (1, 2, 0, 1), mode="circular") * 2.0


class Replicated(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (1, 3, 2, -1), mode="replicate") * 2.0


class Shuffled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pixel_shuffle(x, 2) * 2.0


class Row(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.select_scatter(x, x[:, 0], 1, -3) * 2.0


class LastButOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, -2] * 2.0


class Second(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 1] * 2.0


class Halves(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return a * b


class Neighbours(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x[:, 1:] - x[:, :-1]).sum(1)


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.diff(x, 3) * 2.0


class Smaller(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=0.6, mode="area", recompute_scale_factor=True) * 2.0


class NoColumns(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[:, 4:4] * 2.0, x + 1.0


class BeyondEight(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[8:] * 2.0, x + 1.0


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x) * 2.0


class Convolved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x) * 2.0


class Upsampled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 4, 3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(x) * 2.0


class NormedOverTheBatch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, None, None, training=True) * 2.0


class NormedPlaces(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.instance_norm(x) * 2.0


class NormedChannels(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.group_norm(x, 3) * 2.0


class LongRows(nn.Module):
    """A program for each chunk of a row, the rows along the grid's second dimension."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1)


@pytest.mark.parametrize(
    ("kind", "shape", "taken", "refused"),
    [
        (Pooled, (2, 3, 8, 8), (2, 3, 2, 2), (2, 3, 1, 8)),
        (Convolved, (2, 3, 8, 8), (2, 3, 3, 3), (2, 3, 2, 8)),
        (Wide, (3, 4, 8), (3, 4, 3), (3, 4, 1)),
        (WidePlane, (2, 3, 8, 8), (2, 3, 1, 2), (2, 3, 8, 1)),
        (Mirrored, (3, 4, 8), (3, 4, 3), (3, 4, 2)),
        (MirroredByOne, (3, 4, 8), (3, 4, 2), (3, 4, 1)),
        (MirroredPlane, (2, 3, 9, 7), (2, 3, 2, 2), (2, 3, 1, 5)),
        (MirroredPlane, (2, 3, 9, 7), (2, 3, 2, 2), (2, 3, 5, 1)),
        (MirroredVolume, (2, 3, 4, 5, 6), (2, 3, 2, 1, 2), (2, 3, 1, 5, 6)),
        (MirroredVolume, (2, 3, 4, 5, 6), (2, 3, 2, 1, 2), (2, 3, 4, 5, 1)),
        (MirroredAndCut, (3, 4, 8), (3, 4, 2), (3, 4, 1)),
        (MirroredTogether, (3, 4, 8), (3, 2, 2), (3, 2, 1)),
        (MirroredByRows, (3, 6, 9), (3, 4, 2), (3, 6, 3)),
        (Shuffled, (3, 8, 2, 3), (3, 12, 2, 3), (3, 6, 2, 3)),
        (Row, (3, 8), (3, 4), (3, 2)),
        (LastButOne, (3, 8), (3, 2), (3, 1)),
        (Second, (3, 8), (3, 2), (3, 1)),
        (Halves, (3, 8), (3, 2), (3, 1)),
        (NormedOverTheBatch, (5, 8), (2, 8), (1, 8)),
        (NormedPlaces, (3, 4, 6), (3, 4, 2), (3, 4, 1)),
        (NormedChannels, (5, 3), (2, 3), (1, 3)),
    ],
)
def test_what_eager_refuses_is_outside(
    kind: type[nn.Module], shape: tuple[int, ...], taken: tuple[int, ...], refused: tuple[int, ...], tmp_path: Path
) -> None:
    module, kernel = _built(kind, shape, tmp_path)
    with torch.no_grad():
        module(torch.randn(taken))
        assert kernel._in_envelope(torch.randn(taken))
        assert not kernel._in_envelope(torch.randn(refused))
        with pytest.raises((RuntimeError, IndexError, ValueError)):
            module(torch.randn(refused))


@pytest.mark.parametrize(
    ("kind", "shape", "taken", "refused"),
    [
        (Neighbours, (3, 8), (3, 2), (3, 1)),  # nothing is left to add
        (Twice, (3, 8), (3, 4), (3, 1)),  # as many are taken away as there are not
        (Smaller, (2, 3, 4, 4, 4), (2, 3, 5, 5, 5), (2, 3, 1, 1, 1)),  # a size divides by what it shrinks to
    ],
)
def test_sizes_that_leave_nothing_are_outside(
    kind: type[nn.Module], shape: tuple[int, ...], taken: tuple[int, ...], refused: tuple[int, ...], tmp_path: Path
) -> None:
    _, kernel = _built(kind, shape, tmp_path)
    with torch.no_grad():
        assert kernel._in_envelope(torch.randn(taken))
        assert not kernel._in_envelope(torch.randn(refused))


def test_margins_of_the_last_elements_have_room_in_one_element(tmp_path: Path) -> None:
    module, kernel = _built(Replicated, (2, 3, 9, 7), tmp_path)
    x = torch.randn(2, 3, 1, 1)
    with torch.no_grad():
        assert kernel._in_envelope(x)
        assert torch.equal(kernel(x), module(x))


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [(NoColumns, [(8, 16), (5, 4)], (8, 3)), (BeyondEight, [(8, 16), (11, 16)], (7, 16))],
)
def test_results_without_elements_are_inside_where_the_example_has_some(
    kind: type[nn.Module], taken: list[tuple[int, ...]], refused: tuple[int, ...], tmp_path: Path
) -> None:
    module, kernel = _built(kind, (8, 16), tmp_path)
    with torch.no_grad():
        assert not kernel._in_envelope(torch.randn(refused))
        for x in map(torch.randn, taken):
            assert kernel._in_envelope(x)
            for got, expected in zip(kernel(x), module(x), strict=True):
                torch.testing.assert_close(got, expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("kind", "path", "name", "value"),
    [
        (Pooled, "pool", "kernel_size", 3),
        (Upsampled, "up", "output_padding", (1, 1)),
        (Upsampled, "up", "stride", (3, 3)),
        (Convolved, "conv", "padding", (1, 1)),
    ],
)
def test_a_setting_of_a_layer_that_is_changed_later_is_outside(
    kind: type[nn.Module], path: str, name: str, value: object, tmp_path: Path
) -> None:
    _, kernel = _built(kind, (2, 3, 8, 8), tmp_path)
    with torch.no_grad():
        assert kernel._in_envelope(torch.randn(2, 3, 8, 8))
        setattr(kernel.get_submodule(path), name, value)
        assert not kernel._in_envelope(torch.randn(2, 3, 8, 8))


def test_more_programs_than_a_grid_has_along_its_second_dimension_are_outside(tmp_path: Path) -> None:
    _, kernel = _built(LongRows, (2, 70000), tmp_path)
    with torch.no_grad():
        assert kernel._in_envelope(torch.zeros(1).expand(65535, 1000))
        assert not kernel._in_envelope(torch.zeros(1).expand(65536, 1000))


def test_an_empty_example_is_refused() -> None:
    module = Neighbours().eval()
    exported = capture(module, (torch.randn(0, 3),))
    with pytest.raises(NotWritable, match=r"x is empty"):
        synthesize(module, exported, class_name="Neighbours", import_from=__name__)


def _built(kind: type[nn.Module], shape: tuple[int, ...], tmp_path: Path, *others: tuple[int, ...]) -> tuple[Any, Any]:
    """A module, and the instance of the class that was written for an input of ``shape``, and of ``others``."""
    module = kind().eval()
    exported = capture(module, tuple(map(torch.randn, (shape, *others))))
    made = synthesize(module, exported, class_name=kind.__name__, import_from=__name__)[0].source
    path = tmp_path / f"{kind.__name__.lower()}_sizes.py"
    path.write_text(made)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, path.stem, loaded)
        patch.setenv("TRITON_INTERPRET", "1")
        spec.loader.exec_module(loaded)
        return module, getattr(loaded, f"{kind.__name__}Triton")().eval()


class UpToAnother(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[:, : y.shape[0]] * 2.0, y * 2.0


class UpToNine(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.flatten()[:9] * 2.0, y * 2.0


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [
        (UpToAnother, ((3, 6), (6,)), ((3, 6), (7,))),  # of a longer one all is taken, and no more
        (UpToNine, ((1, 8), (3,)), ((2, 5), (3,))),
    ],
)
def test_slices_end_where_they_did_in_the_example(
    kind: type[nn.Module], taken: tuple[tuple[int, ...], ...], refused: tuple[tuple[int, ...], ...], tmp_path: Path
) -> None:
    _, kernel = _built(kind, (2, 4), tmp_path, (3,))
    with torch.no_grad():
        assert kernel._in_envelope(*map(torch.randn, taken))
        assert not kernel._in_envelope(*map(torch.randn, refused))
