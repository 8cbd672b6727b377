"""Types of arguments that several commands share, with the message for an argument of the wrong form."""

from __future__ import annotations

import argparse
import math

from kernel_lsp import nearest


def count(text: str) -> int:
    """A number from 1.

    Raises:
        argparse.ArgumentTypeError: the text is no number from 1.
    """
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def days(text: str) -> float:
    """A number of days, not negative.

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (math.isfinite(number) and number >= 0):
        raise argparse.ArgumentTypeError("must be a number of days")
    return number


def kinds(text: str) -> tuple[str, ...]:
    """The kinds of findings that ``--fail-on`` names.

    Raises:
        argparse.ArgumentTypeError: the text is empty, or names another.
    """
    from kernel_lsp.checking.records import CODES

    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words or ("",):
        if word not in CODES:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(CODES)}{nearest.hint(word, CODES)}")
    return words
