"""The fingerprint stays when only the looks of the code change, and changes with every token of behaviour."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp import analysis
from kernel_lsp.errors import ClassNotFound

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.py"))

SOURCE = '''
"""A module."""
import math
import torch
from torch import nn
import torch.nn.functional as F

SCALE = 0.5  # half
MASK = {"a": [1, 2,], 'b': (3,)}


def helper(x, *, eps=1e-6):
    """Helps."""
    return x / (x.abs().max() + eps)


def unused(x):
    return x + 1


class Base(nn.Module):
    """Base."""

    def scale(self, x):
        return x * SCALE


class Block(Base):
    def __init__(self, dim: int = 8, bias=True):
        super().__init__()
        """Not even a docstring."""
        self.table = MASK["a"][0]
        self.weight = nn.Parameter(torch.ones(dim)[None, :, ...])
        self.name = f"block {dim!r:>{4}} {{x}}" "tail"
        pass

    def forward(self, x, mode="sum"):
        if not (x.dim() == 2 and mode != "mean"):
            x = x[0:1, ..., 1:]
        else:
            x = (x + self.weight) * 2 - -1
        for i in range(3):
            x = helper(x, eps=1e-5) if i < 2 else F.relu(x)
        y, z = x.chunk(2, -1)
        total = sum(t.mean() for t in (y, z))
        return self.scale(x) + total + math.pi


def get_inputs():
    return [torch.randn(2, 8)]
'''
PATH = Path("/nowhere/block.py")


def fingerprint(source: str, name: str = "Block", files: dict[str, str] | None = None) -> str:
    texts = {PATH.parent / f"{file}.py": text for file, text in (files or {}).items()}
    return analysis.fingerprint(source, PATH, name, texts.get)


def reference() -> str:
    return fingerprint(SOURCE)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_unparsed_source_has_the_same_fingerprint(path: Path) -> None:
    """``ast.unparse`` drops every comment and writes all formatting anew."""
    source = path.read_text()
    for c in analysis.module_classes(source, path):
        rewritten = ast.unparse(ast.parse(source))
        assert rewritten != source
        assert analysis.fingerprint(rewritten, path, c.name) == analysis.fingerprint(source, path, c.name)


def test_unparsed_and_reformatted_source_has_the_same_fingerprint() -> None:
    assert fingerprint(ast.unparse(ast.parse(SOURCE))) == reference()
    for options in (["--line-length=40"], ["--line-length=200"], ["--config=format.quote-style='single'"]):
        ruff = [sys.executable, "-m", "ruff", "format", "--isolated", *options, "-"]
        done = subprocess.run(ruff, input=SOURCE, text=True, capture_output=True, check=True)
        assert done.stdout != SOURCE
        assert fingerprint(done.stdout) == reference()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Base."""', '"""Another text."""'),
        ('    """Base."""\n', ""),
        ('"""Not even a docstring."""', ""),
        ("        pass\n", ""),
        ("# half", "# a half, says the comment"),
        ("return x * SCALE", "return (x * SCALE)"),
        ("return x * SCALE", "return x * \\\n            SCALE"),
        ("return x * SCALE", "return x * SCALE;"),
        ("0.5 ", "5e-1 "),
        ("1e-5", "1E-5"),
        ('MASK["a"]', "MASK['a']"),
        ('"mean"', "'me' 'an'"),
        ("y, z = x", "(y, z) = x"),
        ("[1, 2,]", "[1, 2]"),
        ("x.chunk(2, -1)", "x.chunk(\n            2,  # parts\n            -1,\n        )"),
        ("sum(t.mean() for t in (y, z))", "sum((t.mean() for t in (y, z)))"),
        ("in (y, z))", "in ((y), z,))"),
        ("return x + 1", "return x + 2"),  # not reached
        ("torch.randn(2, 8)", "torch.randn(4, 8)"),  # the example inputs are no behaviour
        ("def unused", "def unused_too"),
        ("\n", "\r\n"),
        ("class Base(nn.Module):", "class Base( nn . Module , ):"),
        ('f"block {dim!r:>{4}} {{x}}" "tail"', "f'block {dim!r:>{4}} {{x}}tail'"),
        ("import torch.nn.functional as F", "import torch.nn.functional as F, os"),
        ("import math\nimport torch\n", "import torch\nimport math\n"),
    ],
)
def test_looks_do_not_count(old: str, new: str) -> None:
    assert old in SOURCE
    assert fingerprint(SOURCE.replace(old, new)) == reference()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 0.5", "SCALE = 0.25"),
        ("(3,)", "(3)"),
        ("x[0:1, ..., 1:]", "x[0:1, ..., :1]"),
        ("- -1", "+ -1"),
        ("x / (x.abs().max() + eps)", "x / x.abs().max() + eps"),
        ("import torch.nn.functional as F", "import other as F"),
        ("from torch import nn", "from other import nn"),
        ("not (x.dim() == 2 and", "not x.dim() == 2 and ("[:-1]),
        ("[None, :, ...]", "[None, ...]"),
        ("ones(dim)[None, :, ...]", "ones(dim)[dim,]"),
        (" - -1", ""),
        ("{{x}}", "{x}"),
        ('"tail"', '"tails"'),
        ("class Base(nn.Module):", "class Base(nn.Linear):"),
        ("class Block(Base):", "@torch.no_grad()\nclass Block(Base):"),
        ("SCALE = 0.5", "SCALE = 0.5\nSCALE += 1"),
        ("SCALE = 0.5", "SCALE = 0.5\ntorch.set_default_dtype(torch.float64)"),
        ("SCALE = 0.5", "SCALE = 0.5\ntorch.backends.cuda.matmul.allow_tf32 = True"),
        ("SCALE = 0.5", "SCALE = 0.5\nif math.pi > 3:\n    SCALE = 1"),
        ("SCALE = 0.5", "try:\n    SCALE = 0.5\nexcept OSError:\n    SCALE = 1"),
        ("MASK = ", "MASK = OTHER = "[:7] + "dict() or "),
    ],
)
def test_behaviour_counts(old: str, new: str) -> None:
    assert old in SOURCE
    assert fingerprint(SOURCE.replace(old, new)) != reference()


def reached_tokens() -> list[tokenize.TokenInfo]:
    """The tokens of Base, Block, helper, SCALE and MASK that are no docstring; from Python 3.12 on those in f-strings, too."""
    skipped = ("Helps.", "Base.", "Not even", "A module")
    lines = SOURCE.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("SCALE")) + 1
    unused = next(i for i, line in enumerate(lines) if line.startswith("def unused")) + 1
    stop = next(i for i, line in enumerate(lines) if line.startswith("def get_inputs")) + 1
    kinds = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)
    return [
        t
        for t in tokenize.generate_tokens(io.StringIO(SOURCE).readline)
        if t.type in kinds
        and start <= t.start[0] < stop
        and t.start[0] not in (unused, unused + 1)
        and not any(word in t.string for word in skipped)
        and t.string not in ("pass", ",", "(", ")", "[", "]", "{", "}", ":", ".", "=", ";", "!")
    ]


def mutated(token: tokenize.TokenInfo) -> str:
    """SOURCE with one token replaced by another of its kind."""
    if token.type == tokenize.NUMBER:
        new = "7" + token.string
    elif token.type == tokenize.STRING:
        quote = token.string[-1]
        new = token.string[:-1] + "q" + quote
    elif token.type == tokenize.NAME:
        keywords = {"if": "while", "else": "elif 1", "and": "or", "or": "and", "not": "bool", "return": "yield"}
        new = keywords.get(token.string, token.string + "_")
    else:
        swaps = {"+": "-", "-": "+", "*": "//", "/": "*", "==": "!=", "!=": "==", "<": "<=", "...": "None"}
        new = swaps[token.string]
    lines = SOURCE.splitlines(keepends=True)
    row, column = token.start[0] - 1, token.start[1]
    lines[row] = lines[row][:column] + new + lines[row][token.end[1] :]
    return "".join(lines)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(reached_tokens()))
def test_every_token_of_behaviour_counts(token: tokenize.TokenInfo) -> None:
    source = mutated(token)
    try:
        changed = fingerprint(source)
    except ClassNotFound:
        return  # the class itself was renamed, or hidden by a broken statement
    assert changed != reference(), f"{token.string!r} in line {token.start[0]}"


COMMENTS = st.sampled_from(["", "  # note", "    # é 𝄞", "\t# x\f"])
GAPS = st.sampled_from(["", "\n", "\n\n", "    # alone\n", "\f\n", "\n  # odd indent\n"])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_comments_and_gaps_do_not_count(data: st.DataObject) -> None:
    out = []
    for line in SOURCE.splitlines():
        comment = "" if line.endswith("\\") else data.draw(COMMENTS)
        out.append(line + comment + "\n" + data.draw(GAPS))
    assert fingerprint("".join(out)) == reference()


OPS = (
    "import torch\nEPS = 1e-6\ndef norm(x):\n    return x * torch.rsqrt(x.mean() + EPS)\ndef other(x):\n    return x\n"
)
USER = "from torch import nn\n{imported}\nclass Net(nn.Module):\n    def forward(self, x):\n        return {call}(x)\n"


@pytest.mark.parametrize(
    ("imported", "call", "files"),
    [
        ("from ops import norm", "norm", {"ops": OPS}),
        ("from .ops import norm as n", "n", {"ops": OPS}),
        ("import ops", "ops.norm", {"ops": OPS}),
        ("import lib.ops as o", "o.norm", {"lib/__init__": "", "lib/ops": OPS}),
        ("import lib.ops", "lib.ops.norm", {"lib/__init__": "", "lib/ops": OPS}),
        ("from lib import norm", "norm", {"lib/__init__": "from .ops import *", "lib/ops": OPS}),
        ("from lib import ops", "ops.norm", {"lib/__init__": "", "lib/ops": OPS}),
        ("from ops import *", "norm", {"ops": OPS}),
        ("import ops", "getattr(ops, 'norm')", {"ops": OPS}),
        ("", "__import__('math') and norm_alias.norm", {"ops": OPS}),
    ],
)
def test_reaches_through_imports(imported: str, call: str, files: dict[str, str]) -> None:
    source = USER.format(imported=imported, call=call)
    if not imported:  # an import inside the function
        source = source.replace("        return", "        import ops as norm_alias\n        return")
    before = fingerprint(source, "Net", files)
    name = next(name for name in files if name.endswith("ops"))
    for old, new in (("1e-6", "1e-5"), ("rsqrt", "sqrt")):
        assert fingerprint(source, "Net", {**files, name: OPS.replace(old, new)}) != before
    same = OPS.replace("def norm(x):", 'def norm(x):  # a comment\n    """Doc."""')
    assert fingerprint(source, "Net", {**files, name: same}) == before
    if "getattr" not in call and imported:
        unreached = OPS.replace("def other(x):\n    return x", "def other(x):\n    return x + 1")
        assert fingerprint(source, "Net", {**files, name: unreached}) == before


def test_import_cycle_ends() -> None:
    source = (
        "from torch import nn\nfrom a import f\nclass Net(nn.Module):\n    def forward(self, x):\n        return f(x)\n"
    )
    a = "from b import g\ndef f(x):\n    return g(x)\n"
    b = "from a import f\ndef g(x):\n    return x if x.dim() else f(x)\n"
    first = fingerprint(source, "Net", {"a": a, "b": b})
    assert fingerprint(source, "Net", {"a": a, "b": b.replace("x.dim()", "x.ndim")}) != first


def test_nested_class_reaches_its_neighbours() -> None:
    source = (
        "from torch import nn\nclass Outer:\n    EPS = 1\n    class Base(nn.Module):\n        a = 1\n"
        "    class Inner(Base):\n        def forward(self, x):\n            return x\n    other = 2\n"
    )
    before = fingerprint(source, "Outer.Inner")
    assert fingerprint(source.replace("a = 1", "a = 2"), "Outer.Inner") != before
    assert fingerprint(source.replace("other = 2", "other = 3"), "Outer.Inner") == before


def test_main_guard_does_not_count() -> None:
    guard = '\nif __name__ == "__main__":\n    print(Block())\n'
    assert fingerprint(SOURCE + guard) == reference()


def test_moving_definitions_does_not_count() -> None:
    head, rest = SOURCE.split("def unused(x):")
    unused, tail = rest.split("class Base")
    assert fingerprint(head + "class Base" + tail + "\n\ndef unused(x):" + unused) == reference()


def test_a_class_that_is_only_imported() -> None:
    source = "from layers import Norm as RMS, Other\nfrom package import Far\n\ndef get_inputs_RMS():\n    return []\n"
    files = {"layers": "class Norm:\n    eps = 1e-6\nclass Other:\n    pass\n"}
    first = fingerprint(source, "RMS", files)
    assert fingerprint(source, "RMS", {"layers": files["layers"].replace("1e-6", "1e-5")}) != first
    assert fingerprint(source, "RMS", {"layers": files["layers"].replace("    pass", "    x = 1")}) == first
    assert fingerprint(source, "Far", files) != fingerprint(source.replace("package", "packages"), "Far", files)


def test_missing_class() -> None:
    with pytest.raises(ClassNotFound, match="Nothing"):
        fingerprint(SOURCE, "Nothing")


def test_a_deep_expression_is_no_problem() -> None:
    source = SOURCE.replace("return x * SCALE", "return " + " + ".join(["x"] * 5000))
    assert fingerprint(source) != reference()


def test_conditional_definitions_all_count() -> None:
    source = (
        "from torch import nn\ntry:\n    import fast\n    class A(nn.Module):\n        n = 1\n"
        "except ImportError:\n    class A(nn.Module):\n        n = 2\n"
    )
    before = fingerprint(source, "A")
    assert fingerprint(source.replace("n = 2", "n = 3"), "A") != before
    assert fingerprint(source.replace("n = 1", "n = 3"), "A") != before


EDITS = st.sampled_from(["\n", "x", "# c\n", "", "    ", "SCALE = 2\n", "def helper(x): return x\n", "1", "@d\n", '"'])


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SOURCE)), st.integers(0, 6), EDITS), max_size=5))
def test_a_source_that_is_kept_has_the_same_fingerprint_as_a_new_one(edits: list[tuple[int, int, str]]) -> None:
    kept = analysis.Source(SOURCE)
    for at, length, new in edits:
        at = min(at, len(kept.text.text))
        kept.replace(at, min(at + length, len(kept.text.text)), new)
        fresh = analysis.Source(kept.text.text)
        if fresh.tree.root_node.has_error or not is_python(kept.text.text):  # the grammar takes any indentation
            continue
        found = []
        for source in (kept, fresh):
            try:
                found.append(analysis.fingerprint_of(source, PATH, "Block", lambda path: None))
            except ClassNotFound:
                found.append("none")
        assert found[0] == found[1]


@pytest.mark.parametrize("statement", ["from .scale import SCALE", "from net.scale import SCALE"])
def test_a_file_in_a_package_without_init_files_whose_name_is_no_identifier(tmp_path, statement):
    (tmp_path / "net").mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    scale, path = tmp_path / "net" / "scale.py", tmp_path / "net" / "19_ReLU 模.py"
    text = f"import torch\n{statement}\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x * SCALE\n"
    found = set()
    for number in "223":
        scale.write_text(f"SCALE = {number}\n")
        found.add(analysis.fingerprint(text, path, "Model"))
    assert len(found) == 2
    assert [c.name for c in analysis.module_classes(text, path)] == ["Model"]
