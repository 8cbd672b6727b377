"""Which problems of a suite are meant: ``--level 1,2 --problem 1-20,47,2:47``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernel_lsp.errors import SelectionEmpty, SelectionInvalid
from kernel_lsp.suites.found import Found

_LEVELS = re.compile(r"\d+")
_PROBLEMS = re.compile(r"(?:(\d+):)?(\d+)(?:-(\d+))?")

#: Levels that are meant where none is named: the 250 problems that figures are published for.
DEFAULT_LEVELS = (1, 2, 3)

Range = tuple[int | None, int, int]  # level (None: each), first and last number


def select(found: Sequence[Found], levels: str | None, problems: str | None) -> list[Found]:
    """The problems that the two options mean, in the suite's order.

    Without levels, those of KernelBench's levels 1 to 3, of a folder without a level, of a level's own folder where that
    is named, and of another level where ``--problem`` names it (``4:1``).

    Raises:
        SelectionInvalid: an option cannot be read.
        SelectionEmpty: it leaves no problem.
    """
    wanted_levels = parse_levels(levels) if levels is not None else None
    ranges = parse_problems(problems) if problems is not None else None
    chosen = [
        one
        for one in found
        if (_by_default(one, ranges) if wanted_levels is None else one.problem.level in wanted_levels)
        and (ranges is None or _meant(one.problem.level, one.problem.number, ranges))
    ]
    if not chosen:
        given = [
            f"--level {levels}" if levels is not None else "",
            f"--problem {problems}" if problems is not None else "",
        ]
        words = " ".join(filter(None, given)) or "The choice of levels 1 to 3 (there is no --level)"
        raise SelectionEmpty(selection=words, there=there(found))
    return chosen


def _by_default(one: Found, ranges: list[Range] | None) -> bool:
    """Whether a problem is meant where no level is."""
    level = one.problem.level
    return (
        level is None
        or level in DEFAULT_LEVELS
        or one.file.parent == one.folder
        or _meant(level, one.problem.number, [one for one in ranges or [] if one[0] == level])
    )


def parse_levels(text: str) -> set[int]:
    """``1,2`` → {1, 2}.

    Raises:
        SelectionInvalid: the text has another form.
    """
    words = _words(text)
    if not words or not all(_LEVELS.fullmatch(word) for word in words):
        raise SelectionInvalid(option="--level", value=text, example="1 or 1,2")
    return {int(word) for word in words}


def parse_problems(text: str) -> list[Range]:
    """``1-20,2:47`` → numbers 1 to 20 of each level, and number 47 of level 2.

    Raises:
        SelectionInvalid: the text has another form.
    """
    found = [_PROBLEMS.fullmatch(word) for word in _words(text)]
    ranges = [(int(m[1]) if m[1] else None, int(m[2]), int(m[3] or m[2])) for m in found if m]
    if not found or len(ranges) < len(found) or any(first > last for _, first, last in ranges):
        raise SelectionInvalid(option="--problem", value=text, example="47, 1-20,47 or 2:47 (number 47 of level 2)")
    return ranges


def there(found: Iterable[Found]) -> str:
    """Which numbers there are: ``level 1: 1-100; level 2: 1-40, 42``."""
    by_level: dict[int | None, list[int]] = {}
    for one in found:
        if one.problem.number is not None:
            by_level.setdefault(one.problem.level, []).append(one.problem.number)
    parts = [
        (f"level {level}: " if level is not None else "") + _ranges(sorted(set(numbers)))
        for level, numbers in by_level.items()
    ]
    return "; ".join(parts)


def _meant(level: int | None, number: int | None, ranges: list[Range]) -> bool:
    return number is not None and any(
        (wanted is None or wanted == level) and first <= number <= last for wanted, first, last in ranges
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}-{last}" if first != last else str(first) for first, last in runs)
