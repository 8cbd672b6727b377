"""What benchmarks/families.py makes of the kept records, which it needs nothing else for."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import families  # noqa: E402


def test_every_kept_problem_is_in_one_family_and_the_table_has_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written, table, out = [], families.table, tmp_path / "families.md"
    monkeypatch.setattr(families, "table", lambda rows, *more: written.append(rows) or table(rows, *more))
    assert families.main(["--out", str(out)]) == 0
    (rows,) = written
    assert Counter(row.level for row in rows) == {1: 100, 2: 100, 3: 50}
    by_number = {(row.level, row.number): row.family for row in rows}
    assert set(by_number.values()) == set(families.GOALS) - {families._TAILS}
    expected = {
        (1, 1): "products, large, level 1",
        (1, 16): "products, large, level 1",  # its first operand is transposed
        (1, 10): "products, thin and batched, level 1",
        (1, 47): "reductions over a dimension",
        (1, 61): "transposed convolution, 3-d, stride 1",
        (1, 72): "transposed convolution, strided",
        (1, 85): "depthwise and separable convolution",
        (2, 1): "convolution, 2-d, 32 channels or more",
        (2, 21): "convolution, 2-d, fewer channels",
        (2, 56): "products, thin and batched, level 2",
        (2, 61): "transposed convolution, 3-d, stride 1",
        (3, 9): "level 3: networks that wait for launches",
        (3, 39): "recurrent layers",
        (3, 47): "products, thin and batched, level 3",
        (3, 50): "attention, level 3",
    }
    assert {key: by_number[key] for key in expected} == expected
    text = out.read_text()
    assert text == capsys.readouterr().out
    lines = text.splitlines()[8:]
    counts = {cells[1].strip(): int(cells[2]) for line in lines[: lines.index("")] if (cells := line.split("|"))}
    tails = counts.pop("of the transposed ones, level 2 (whole tails)")
    assert counts.pop("all") == 250 == sum(counts.values()) and tails == 30
    far = families.farthest(rows)
    assert [row.speedup / goal for row, _, goal in far] == sorted(row.speedup / goal for row, _, goal in far)
    assert not any(row.collapsed or row.speedup >= goal for row, _, goal in far)
    assert all(f"| level {row.level} #{row.number} | {name} | {goal:g}× |" in text for row, name, goal in far)
    assert text == families.OUT.read_text(), "run benchmarks/families.py again"
