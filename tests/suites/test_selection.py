"""``--level`` and ``--problem``."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp import errors
from kernel_lsp.suites import selection
from kernel_lsp.suites.found import Found
from kernel_lsp.suites.problem import Problem

NUMBERS = {1: range(1, 6), 2: [1, 2, 40, 47]}
FOUND = [
    Found(Problem("kernelbench", f"level{level}/{n}_P", f"{n}_P", "", "Model", level, n), Path("/x"), Path("/"))
    for level, numbers in NUMBERS.items()
    for n in numbers
]


def chosen(levels: str | None, problems: str | None) -> list[tuple[int | None, int | None]]:
    return [(one.problem.level, one.problem.number) for one in selection.select(FOUND, levels, problems)]


@pytest.mark.parametrize(
    ("levels", "problems", "expected"),
    [
        (None, None, [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 1), (2, 2), (2, 40), (2, 47)]),
        ("2", None, [(2, 1), (2, 2), (2, 40), (2, 47)]),
        ("1, 2", "2-3,47", [(1, 2), (1, 3), (2, 2), (2, 47)]),
        (None, "2:47,1:1", [(1, 1), (2, 47)]),
        (None, "2:40-50", [(2, 40), (2, 47)]),
        ("1", "3,3,3-3", [(1, 3)]),
    ],
)
def test_selections(levels: str | None, problems: str | None, expected: list[tuple[int, int]]) -> None:
    assert chosen(levels, problems) == expected


def test_level_4_is_meant_where_it_is_named() -> None:
    def found(level: int | None, folder: str = "/") -> Found:
        return Found(
            Problem("kernelbench", f"{level}", "1_P", "", "Model", level, 1),
            Path(f"/level{level}/1_P.py"),
            Path(folder),
        )

    several = [found(None), found(3), found(4)]
    assert [one.problem.level for one in selection.select(several, None, None)] == [None, 3]
    assert [one.problem.level for one in selection.select(several, "4", None)] == [4]
    assert [one.problem.level for one in selection.select(several, None, "1,4:1")] == [None, 3, 4]
    assert [one.problem.level for one in selection.select(several, None, "1,4:2")] == [None, 3]
    assert len(selection.select([found(4, "/level4")], None, None)) == 1
    with pytest.raises(errors.SelectionEmpty, match="levels 1 to 3"):
        selection.select([found(4)], None, None)


@pytest.mark.parametrize("text", ["", ",", "x", "1-", "5-2", "1..3", "-3", "1:2:3", "1,x"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(errors.SelectionInvalid, match="--problem"):
        chosen(None, text)


def test_levels_that_cannot_be_read() -> None:
    with pytest.raises(errors.SelectionInvalid, match="--level 1-2"):
        chosen("1-2", None)


def test_a_selection_that_leaves_nothing_says_what_there_is() -> None:
    with pytest.raises(errors.SelectionEmpty) as caught:
        chosen("2", "3")
    assert str(caught.value).startswith(
        "--level 2 --problem 3 leaves no problem. There are level 1: 1-5; level 2: 1-2, 40, 47."
    )
