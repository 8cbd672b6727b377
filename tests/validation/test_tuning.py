"""Which variants are compiled at once, and what becomes of them where the time is over."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernel_lsp.validation import tuning
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
