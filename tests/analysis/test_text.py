"""Positions as editors count them, against a plain-text model."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.analysis import Position, Source, Text, module_classes
from kernel_lsp.analysis.outline import Outline, outlined
from kernel_lsp.analysis.text import Encoding, column_units, units_column

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]
PIECES = st.text(alphabet=st.sampled_from("ab =\r\n\f\v\x1c\x85\u2028\u2029é中𝄞\ufeff\t\"'#("), max_size=12)


def model_lines(text: str) -> list[str]:
    return re.split("\r\n|\n|\r", text)


@given(PIECES, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12), PIECES), max_size=12))
def test_edits_keep_text_and_lines_in_step(start: str, edits: list[tuple[int, int, str]]) -> None:
    text, model = Text(start), start
    for at, length, new in edits:
        at = min(at, len(model))
        end = min(at + length, len(model))
        text.replace(at, end, new)
        model = model[:at] + new + model[end:]
        assert text.text == model
        assert [text.line(n) for n in range(text.line_count)] == model_lines(model)
        assert text.starts == Text(model).starts


@given(PIECES, st.integers(0, 14), st.sampled_from(ENCODINGS))
def test_columns_and_units_are_inverse(line: str, column: int, encoding: Encoding) -> None:
    line = model_lines(line)[0]
    column = min(column, len(line))
    codec, width = CODECS[encoding]
    units = column_units(line, column, encoding)
    assert units == len(line[:column].encode(codec)) // width
    assert units_column(line, units, encoding) == column


def test_a_unit_inside_a_character_rounds_down() -> None:
    assert units_column("a𝄞b", 2, "utf-16") == 1
    assert units_column("a𝄞b", 3, "utf-8") == 1
    assert units_column("a𝄞b", 99, "utf-16") == 3


def test_beyond_the_end() -> None:
    text = Text("ab\r\nc")
    assert text.offset(Position(0, 99)) == 2
    assert text.offset(Position(9, 0)) == 5
    assert text.from_units(9, 3, "utf-16") == Position(1, 1)
    assert text.line(7) == ""


BEFORE = ["# plain\n", "# 𝄞 and é\r\n", "x = 1\r", "\f\n", "# \u2028 \x85 \v\n", "s = '𝄞𝄞'; t = 'é'\n", "\n"]


@settings(max_examples=150, deadline=None)
@given(st.booleans(), st.lists(st.sampled_from(BEFORE), max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
def test_ranges_hold_the_names(bom: bool, before: list[str], end: str) -> None:
    """Whatever stands before, the range of a class's name is where an editor sees the name."""
    source = ("\ufeff" if bom else "") + "from torch import nn" + end + "".join(before)
    source += f"# \U0001f600{end}class Größe(nn.Module):  # 𝄞{end}    def forward(self, x): return x{end}"
    source += f"if 1:{end}\tclass Ⅿ𝔸(nn.Linear): pass{end}"
    from pathlib import Path

    found = module_classes(source, Path("/nowhere/a.py"), lambda path: None)
    assert [c.name for c in found] == ["Größe", "Ⅿ𝔸"]
    lines = model_lines(source)
    for c in found:
        line = lines[c.name_range.start.line]
        assert line[c.name_range.start.column : c.name_range.end.column] == c.name
        assert c.name_range.start.line == c.name_range.end.line
    forward = found[0].forward_range
    assert forward is not None
    assert lines[forward.start.line][forward.start.column : forward.end.column] == "def forward(self, x):"


SNIPPETS = [
    "class A(nn.Module):\n", "    def forward(self, x):\n", "        return x\n", "\n", "\n\n", "𝄞", '"""', "(", ")", "\r",
    "x", "x = 1\n", "if x:\n", "else:\n    pass\n", "@decorated\n", "\\\n", "# c\n", "import a\n", "; y", "'", "\t", "",
    "class C(nn.Module): pass\n", "def get_inputs(): pass\n", "    ", "from torch.nn import Module as B\n",
]  # fmt: skip
FILE = """from torch import nn
x = 1; y = 2  # both

@one
class Ä(nn.Module):
    \'\'\'Doc.

At the margin.
\'\'\'
    def forward(self, x):
        return x  # 𝄞

if x:
    class B(Ä): pass
else:
    class B(nn.Module): pass
def f(
    a,
):
    return (
1
)
class D(nn.Linear):
    class E(nn.Module): pass
"""


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 330), st.integers(0, 20), st.sampled_from(SNIPPETS), st.booleans()), max_size=10)
)
def test_incremental_outlines_agree_with_looking_anew(edits: list[tuple[int, int, str, bool]]) -> None:
    """Whether the outline is asked for after every edit or after several, and whether the tree was let go."""
    kept = Source(FILE)
    outlined(kept)
    for at, length, new, look in edits:
        at = min(at, len(kept.text.text))
        kept.replace(at, min(at + length, len(kept.text.text)), new)
        if not look:
            continue
        fresh = Source(kept.text.text)
        mine, theirs = outlined(kept), outlined(fresh)
        assert kept.has_error == fresh.has_error
        if not fresh.has_error:  # with errors, what the parser makes of them may depend on the past
            assert facts(mine) == facts(theirs)
        if at % 3 == 0:
            kept.forget_tree()
        else:
            for node in kept.tree.root_node.children:
                assert kept.offset(node.start_byte) == len(kept.data[: node.start_byte].decode("utf-8", "replace"))


def facts(o: Outline) -> object:
    classes = [
        (c.name, c.bases, c.name_bytes, c.header_bytes, c.body_end, c.forward_bytes, c.repeated) for c in o.classes
    ]
    return classes, o.imports, o.functions, o.aliases, o.stars


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_client_units(encoding: Encoding) -> None:
    text = Text("a = '𝄞é'; b\n")
    position = text.position(text.text.index("b"))
    line, units = text.to_units(position, encoding)
    codec, width = CODECS[encoding]
    assert (line, units) == (0, len("a = '𝄞é'; ".encode(codec)) // width)
    assert text.from_units(line, units, encoding) == position
