"""Which variants are compiled at once, and what becomes of them where the time is over."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernel_lsp.validation import measuring, tuning
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.referee import Referee
from kernel_lsp.validation.slices import Part
from kernel_lsp.validation.trial import Trial


@pytest.mark.parametrize(
    ("kernels", "groups"),
    [
        ([3, 3, 4, 2], [["0", "1", "2", "3"]]),  # all on all cores at once
        ([70, 64, 90], [["0"], ["1"], ["2"]]),
        ([25, 25, 25, 25], [["0", "1", "2"], ["3"]]),
        ([1], [["0"]]),
    ],
)
def test_variants_of_deep_networks_are_compiled_one_after_the_other(
    kernels: list[int], groups: list[list[str]], tmp_path: Path
) -> None:
    paths = []
    for i, count in enumerate(kernels):
        paths.append(str(tmp_path / f"{i}.py"))
        Path(paths[-1]).write_text("@triton.jit\ndef kernel(): ...\n" * count)
    assert tuning._groups(paths) == groups


@pytest.mark.parametrize(
    ("seconds", "compiling", "kernels", "at_once"),
    [
        (115.0, 2.6, 4, 64),  # the usual time, alone on the machine
        (22.0, 2.6, 4, 16),  # half of it for 16 kernels of 0.65 s
        (15.0, 17.5, 9, 12),  # a busy machine
        (22.0, 0.0, 4, 64),  # nothing is known of it
    ],
)
def test_where_time_is_short_fewer_are_compiled_at_once(
    seconds: float, compiling: float, kernels: int, at_once: int
) -> None:
    assert tuning._at_once(seconds, compiling, kernels) == at_once


def compiled(groups: list[list[str]], seconds: float, imported: list[str]) -> tuple[int, list[list[str]]]:
    """What a trial says, and the variants that it had compiled in each go."""
    went: list[list[str]] = []
    trial: Any = SimpleNamespace(variants={name: name for name in imported})
    trial._precompile = lambda modules, cases: went.append(modules)
    message = {"groups": groups, "cases": [], "seconds": seconds}
    return Trial.precompile_variants(trial, message, None)[0]["compiled"], went


def test_no_group_is_begun_when_the_time_is_over() -> None:
    groups = [["0", "1"], ["2"], ["3"]]
    assert compiled(groups, 60.0, ["0", "1", "2", "3"]) == (4, [["0", "1"], ["2"], ["3"]])
    assert compiled(groups, -1.0, ["0", "1", "2", "3"]) == (2, [["0", "1"]])  # the first is compiled whatever the time
    assert compiled(groups, 60.0, ["0", "3"]) == (4, [["0"], [], ["3"]])  # two could not be imported


def compared_with(moved_error: float) -> Any:
    """A referee that has seen no error of eager's on the example, and this one since the weights were moved."""
    trial: Any = SimpleNamespace(source="")
    referee = Referee(torch.nn.Identity(), SimpleNamespace(leaves=[], ops={}), trial, "gpu", lambda *_: None, 1.0)  # type: ignore[arg-type]
    referee.example_error, referee.moved_error = 1e-7, moved_error
    return referee


def test_eagers_error_is_measured_on_slices_in_float64() -> None:
    exact = torch.linspace(1, 2, 64, dtype=torch.float64).reshape(8, 8)
    eager = (exact * (1 + 2.0**-11)).float()  # one rounding to TF32
    reference = Reference(eager, None, [])
    error = tuning._error_of_eager(compared_with(0.0), reference, lambda _: iter([Part(0, 4, exact[:4], [0])]))
    assert 2e-4 < error < 5e-4
    assert reference.slices is None


def test_a_timed_call_is_held_to_eagers_error_with_moved_weights_where_float64_does_not_fit() -> None:
    """A scale of 1e-4, as a LayerScale begins, hides what TF32 does to the branch behind it, and is moved before anything is timed."""
    eager = torch.linspace(1, 2, 64)
    rounded = eager * (1 + 2.0**-11)
    tree: Any = ((), {})
    assert measuring.difference(compared_with(3e-4), tree, Reference(eager, None, []), rounded) == ""
    assert "relative error" in measuring.difference(compared_with(3e-4), tree, Reference(eager, None, []), 1.01 * eager)
    assert "relative error" in measuring.difference(compared_with(0.0), tree, Reference(eager, None, []), rounded)
