"""The Markdown file: every table well-formed, every problem in it, and anybody's text as text."""

import dataclasses
import re

from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.evaluation.markdown import text
from kernel_lsp.evaluation.scores import score

from .made import problem, record, report, suite, validated


def written(records, command=""):
    return text(score(records), records, command)


def tables(whole):
    """Every table as rows of cells; a border inside a cell is escaped."""
    for block in whole.split("\n\n"):
        if block.startswith("|"):
            yield [re.split(r"(?<!\\)\|", line)[1:-1] for line in block.splitlines()]


def test_what_was_run_where_stands_at_the_top():
    whole = written(suite(), "kernel-lsp eval kernelbench KernelBench --level 1")
    top = whole.split("\n\n")
    assert top[0] == "# kernelbench on Test GPU"
    assert "torch 2.11.0" in top[1] and "Written by `kernel-lsp eval kernelbench KernelBench --level 1`." in top[1]


def test_every_table_has_as_many_cells_in_each_row():
    found = list(tables(written(suite())))
    assert len(found) == 8
    for table in found:
        assert len({len(row) for row in table}) == 1


def test_one_row_per_problem():
    rows = list(tables(written(suite())))[-1]
    assert len(rows) == 2 + 6
    cells = [[cell.strip() for cell in row] for row in rows]
    assert cells[2][:5] == ["level1/1_Op", "ok", "–", "1.0e-07 (2.0e-07)", "200.0"]
    assert cells[3][2] == "3 of 4; torch: cat" and cells[7][2] == "–"
    assert cells[3][-1] == "collapses" and cells[5][1] == "ok, slower than eager"
    assert cells[6][1] == "wrong, 1e-2 met" and cells[6][-1] == r"out\[0\] is off by 2."
    assert "2.00×" in cells[2] and "1.10×" in cells[2]


def test_figures_and_failures():
    whole = written(suite())
    assert "| all | eager | 66.7 % (66.7 %) | 50.0 % (66.7 %) |" in whole
    assert "| all | eager | 2.38× (4) | 2.00× (3) | 1.00× (2) |" in whole
    assert "### wrong: 1" in whole and r"- level2/1_Op: out\[0\] is off by 2." in whole
    assert "| `conv2d` | 1 |" in whole


def test_warnings_stand_before_the_figures():
    other = record(problem(9), report(validated(200)), versions={"device": "Other GPU"})
    whole = written([*suite(), other])
    assert "**Warning:** The speedups come from different devices" in whole.split("## ")[0]
    assert whole.startswith("# kernelbench\n")


def test_modes_are_named():
    both = [record(problem(1), report(validated(200)), mode=mode) for mode in ("eval", "train")]
    whole = written(both)
    assert "| all, train | 1 |" in whole and "| train |" in whole.splitlines()[-1]


def test_nothing_run():
    assert "No problem was run." in written([])


@given(st.text(max_size=40), st.text(max_size=40))
def test_anybody_s_text_stays_in_its_cell(name, reason):
    hostile = dataclasses.replace(problem(1), id=name or "x")
    whole = written([record(hostile, status="failed", reason=reason), *suite()], f"kernel-lsp eval {name}")
    for table in tables(whole):
        assert len({len(row) for row in table}) == 1
    without_code = re.sub(r"(`+).*?\1", "", whole)
    assert not re.search(r"(?<!\\)<", without_code)


def test_a_link_an_image_and_a_tag_are_text():
    whole = written([record(problem(1), status="failed", reason="![x](http://e) <img> `a` | b")])
    assert r"\!\[" in whole or r"!\[x\](http://e) \<img\> \`a\` \| b" in whole
