"""tests/long.txt and tests/alike.txt name tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@pytest.mark.parametrize("name", ["long.txt", "alike.txt"])
def test_what_is_listed_is_there(name: str) -> None:
    listed = (TESTS / name).read_text().splitlines()
    assert listed == sorted(set(listed)) and len(listed) > 100
    for line in listed:
        file, *names = re.sub(r"\[.*", "", line).split("::")
        text = (TESTS / file).read_text()
        assert all(f"def {name}(" in text or f"class {name}" in text for name in names), line
