"""The synthesizer writes what somebody has read; every other text is to be read first."""

from __future__ import annotations

import pytest

from tests.synthesis import golden


@pytest.mark.parametrize("name", golden.NAMES)
def test_the_text_is_the_one_that_was_read(name: str) -> None:
    written = golden.text(name)
    assert written == (golden.FOLDER / f"{name}.txt").read_text(), "after `make golden`, git shows the difference"


def test_each_file_has_its_case() -> None:
    assert sorted(path.stem for path in golden.FOLDER.iterdir()) == sorted(golden.NAMES)
    assert len(golden.CHOSEN) >= 60
