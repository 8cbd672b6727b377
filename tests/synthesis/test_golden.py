"""The synthesizer writes what somebody has read; every other text is to be read first."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.synthesis import golden, written

#: those that torch.export takes half a minute for
LONGEST = ["state_space", "loop_selective_scan"]


@pytest.mark.skipif(not torch.__version__.startswith(golden.TORCH), reason=f"the files are for torch {golden.TORCH}")
@pytest.mark.parametrize(
    "name",
    # Most are those that test_cases.py runs in the same session: torch.export, which takes most of the time, is called once for both.
    [
        pytest.param(name, marks=pytest.mark.cases)
        if name in golden.REST[1::2]
        else pytest.param(name, marks=pytest.mark.slow)
        if name in (*golden.REST, *LONGEST)
        else name
        for name in golden.NAMES
    ],
)
def test_the_text_is_the_one_that_was_read(name: str, written_texts: Path) -> None:
    case = f"{name}-as-chosen" if name in golden.WAYS else name  # the other tests of that case look at the default
    text, _ = written.of(written_texts, case, lambda: golden.made_of(name))
    assert text == (golden.FOLDER / f"{name}.txt").read_text(), "after `make golden`, git shows the difference"


def test_each_file_has_its_case() -> None:
    assert sorted(path.stem for path in golden.FOLDER.iterdir()) == sorted(golden.NAMES)
    assert len(golden.CHOSEN) >= 60


@pytest.mark.slow
def test_a_text_is_written_when_it_has_changed_and_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    monkeypatch.setattr(golden.CASES["dictionary"], "tolerance", -1.0)  # as though it were wrong
    path = tmp_path / "dictionary.txt"
    path.write_text("before")
    assert golden.main(["dictionary"]) == 1 and path.read_text() == "before"
    monkeypatch.undo()
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    assert golden.main(["dictionary"]) == 0 and path.read_text() == golden.made_of("dictionary")[0]
