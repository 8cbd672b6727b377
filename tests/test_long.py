"""tests/long.txt names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent


def test_what_takes_long_is_there() -> None:
    listed = (TESTS / "long.txt").read_text().splitlines()
    assert listed == sorted(set(listed)) and len(listed) > 100
    for line in listed:
        file, *names = re.sub(r"\[.*", "", line).split("::")
        text = (TESTS / file).read_text()
        assert all(f"def {name}(" in text or f"class {name}" in text for name in names), line
