"""Answers of language models as they come: with prose, fences, junk and mistakes."""

import ast
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.generators.answers import Code, Unusable, extract

IMPORTS = "import torch\nimport torch.nn as nn\nimport triton\nimport triton.language as tl\n"
KERNEL = '''
@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Doubles, it's “simple”."""
    # every program takes a block
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
'''
LAUNCHER = """
# how it is launched
def double(x):
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""
CLASS = """
class ModelNew(nn.Module):
    def forward(self, x):
        return double(x)
"""
WHOLE = IMPORTS + KERNEL + LAUNCHER + CLASS
MODEL = "class Model(nn.Module):\n    def forward(self, x):\n        return x * 2\n"


def fenced(text: str, mark: str = "```", language: str = "python") -> str:
    return f"{mark}{language}\n{text}\n{mark}\n"


def defined(code: Code) -> list[str]:
    """The names of what the code defines, in order; it parses, and says where its lines are from."""
    tree = ast.parse(code.source)
    assert len(code.lines) == len(code.source.splitlines())
    assert code.first_line == min(line for line in code.lines if line)
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


ALL = ["double_kernel", "double", "ModelNew"]
LATER = "\nif __name__ == '__main__':\n    x = torch.randn(3)\n    print(ModelNew()(x))\n"
INPUTS = "\nx = torch.randn(4)\n\ndef get_inputs():\n    return [torch.randn(4)]\n\nprint(ModelNew()(x))\n"
EXAMPLE = KERNEL.replace("double", "add") + CLASS.replace("double", "add")
LESS_ONE_NAME = WHOLE.replace("offsets = tl", "offsets = = tl")


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        fenced(WHOLE),
        fenced(WHOLE, language="py"),
        fenced(WHOLE, language=""),
        fenced(WHOLE, "~~~"),
        fenced(WHOLE, "````"),
        fenced(WHOLE, language="Python title=x"),
        "Here it is:\n\n" + fenced(WHOLE) + "\nIt's fast because it reads once.\n",
        "Here it is: ```python\n" + WHOLE + "```\n",
        "Here it is:\n" + WHOLE + "\nIt's fast (really).\n\n- one\n- two: yes\n",
        "```python\n" + WHOLE,
        WHOLE + "```\n\nThat is all you need.",
        WHOLE.rstrip() + "```",
        WHOLE + "<|eot_id|>",
        fenced(WHOLE) + "<|end_of_text|><|begin_of_text|>class Other(",
        "<|begin_of_text|>" + WHOLE,
        "<think>\nclass ModelNew(nn.Module):\n  pass\n```python\n</think>\n" + fenced(WHOLE),
        "Hm, ```python and so on\n</think>\n" + WHOLE,
        "".join("    " + line for line in WHOLE.splitlines(True)),
        "The code:\n\n" + "".join("    " + line for line in WHOLE.splitlines(True)) + "\nBye, it's done.\n",
        "".join(("  " if i else "") + line for i, line in enumerate(WHOLE.splitlines(True))),
        "1. First:\n" + "".join("   " + line for line in fenced(WHOLE).splitlines(True)),
        WHOLE.replace("\n", "\r\n"),
        WHOLE.replace("\n", "\r"),
        WHOLE.replace("    ", "\t"),
        WHOLE.replace("    return out", "\treturn out"),
        WHOLE.replace("    ", "\u00a0\u00a0\u00a0\u00a0"),
        WHOLE.replace("= 2", "=\u200b2"),
        "\ufeff" + WHOLE,
        fenced(MODEL) + fenced(WHOLE),
        fenced(IMPORTS + MODEL + KERNEL + LAUNCHER + CLASS),
        fenced(WHOLE) + "Or the old one:\n" + fenced(MODEL),
        fenced(WHOLE + LATER + INPUTS),
        fenced(WHOLE) + "Test it:\n" + fenced(INPUTS + LATER),
        fenced(IMPORTS + KERNEL) + "and the class\n" + fenced(LAUNCHER + CLASS),
        fenced(CLASS) + "which uses\n" + fenced(IMPORTS + KERNEL + LAUNCHER),
        fenced("pip install triton", language="bash") + fenced(WHOLE) + fenced("ok", language="text"),
        fenced(IMPORTS + EXAMPLE + KERNEL + LAUNCHER + CLASS),
        fenced(IMPORTS + EXAMPLE) + fenced(WHOLE),
        fenced(WHOLE.replace("2 *", "3 *")) + "That was wrong:\n" + fenced(WHOLE),
        fenced(WHOLE) + "Faster yet:\n" + fenced(LESS_ONE_NAME),
        WHOLE.replace("import torch.nn as nn\n", "").replace("import triton.language as tl\n", ""),
        KERNEL + LAUNCHER + CLASS,
        "import os, sys, time\n" + WHOLE + "\nos.environ['A'] = 'b'\n",
        "from typing import *\n" + WHOLE,
        WHOLE + "\nclass\x00 \x01\x02",
    ],
)
def test_the_code_is_found(text):
    code = extract(text, "stop")
    assert sorted(defined(code)) == sorted(ALL)
    assert code.class_name == "ModelNew"
    assert "2 * tl.load" in code.source and "3 * tl.load" not in code.source
    for name in ("import torch\n", "import triton\n", "triton.language as tl\n"):
        assert name in code.source
    for junk in ("import os", "get_inputs", "__main__", "print("):
        assert junk not in code.source


def test_comments_docstrings_and_quotes_inside_strings_stay():
    code = extract(fenced(WHOLE), "stop")
    for part in ("# every program takes a block", "# how it is launched\ndef double", "it's “simple”"):
        assert part in code.source


def test_typographic_quotes_are_quotes_outside_strings_only():
    text = WHOLE.replace("return double(x)", 'assert “x’y” != ‘z’, "it’s “so”"  # it’s\n        return double(x)')
    assert 'assert "x’y" != \'z\', "it’s “so”"  # it’s\n' in extract(text, "stop").source


def test_lines_are_those_of_the_answer():
    text = "Sure.\n\n" + fenced(IMPORTS + EXAMPLE) + "<think>a\nb</think>\n" + fenced(WHOLE + LATER)
    code = extract(text, "stop")
    answer = text.split("\n")
    for line, number in zip(code.source.splitlines(), code.lines, strict=True):
        assert not number or answer[number - 1] == line


@pytest.mark.parametrize("name", ["RMSNormNew", "TritonModel", "Model"])
def test_a_misnamed_class(name):
    assert extract(WHOLE.replace("ModelNew", name), "stop").class_name == name


def test_helper_modules_come_with_the_class():
    helper = "class Doubler(nn.Module):\n    def forward(self, x):\n        return double(x)\n"
    uses = "class New(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.d = Doubler()\n"
    uses += "    def forward(self, x):\n        return self.d(x)\n"
    for text in (helper + "\n" + uses, uses + "\n" + helper):
        code = extract(IMPORTS + KERNEL + LAUNCHER + text, "stop")
        assert code.class_name == "New" and "Doubler" in defined(code)


def test_a_kernel_is_kept_with_what_wraps_and_configures_it():
    wrapped = "CONFIGS = [triton.Config({'BLOCK': 64})]\n" + KERNEL
    wrapped += "double_kernel = triton.autotune(CONFIGS, key=['n'])(double_kernel)\n"
    source = extract(IMPORTS + wrapped + LAUNCHER + CLASS, "stop").source
    assert source.index("CONFIGS =") < source.index("def double_kernel") < source.index("double_kernel = triton")


def test_local_names_pull_in_no_junk():
    code = extract(WHOLE + "\nout = torch.randn(2, device='cuda')\nx = out\n", "stop")
    assert "device='cuda'" not in code.source


@pytest.mark.parametrize("cut", [len(WHOLE) + 30, len(WHOLE) + 3, len(WHOLE) + 60])
def test_cut_off_after_the_class(cut):
    text = (WHOLE + "\n\ndef get_inputs():\n    return [torch.randn(4), torch.randn(5)]\n" * 2)[:cut]
    assert defined(extract(text, "length")) == ALL
    assert defined(extract("```python\n" + text, "length")) == ALL


def test_cut_off_inside_the_class():
    for text in (WHOLE, "```python\n" + WHOLE, WHOLE[: -len("double(x)\n")], WHOLE[: WHOLE.index("tl.store")]):
        with pytest.raises(Unusable, match="it was cut off before"):
            extract(text, "length")


def test_a_whole_block_is_not_cut_off():
    assert defined(extract(fenced(WHOLE), "length")) == ALL
    assert defined(extract(fenced(WHOLE) + "This ker", "length")) == ALL
    assert defined(extract(fenced(WHOLE) + fenced(WHOLE)[:-40], "length")) == ALL


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("", "it is empty", None),
        (" \n\t\n", "it is empty", None),
        ("I would leave it to PyTorch.\n\nIt's bound by memory: nothing to win.", "no Python code", None),
        ("import torch of course is needed\nfor this you want a kernel", "no Python code", None),
        ("a = the kernel, def of it, class of functions", "no Python code", None),
        ("\x00\x01\x02\xff" * 100, "no Python code", None),
        ("<think>\n" + WHOLE, "no Python code", None),
        (fenced("SELECT 1", language="sql"), "no Python code", None),
        (IMPORTS + KERNEL + LAUNCHER, "functions, but no class ModelNew", 6),
        (fenced(IMPORTS + MODEL), "repeats the module, but no class ModelNew", 6),
        (IMPORTS + KERNEL + MODEL, "defines kernels, but no class ModelNew", 12),
        ("x\n" + LESS_ONE_NAME, "double_kernel does not parse", 11),
        (WHOLE.replace("return double(x)", "return double(x"), "ModelNew does not parse", 21),
        (IMPORTS + "X = 3\n", "it defines no class ModelNew", None),
        (IMPORTS + "class ModelNew(nn.Module):\n    return 3\n", "ModelNew does not parse: 'return' outside", 6),
    ],
)
def test_what_cannot_be_used_says_why_and_where(text, reason, line):
    with pytest.raises(Unusable) as raised:
        extract(text, "stop")
    assert reason in raised.value.reason
    assert raised.value.line == line


@pytest.mark.parametrize(
    "text",
    [
        "a" * 2_000_000,
        "```" * 200_000,
        "<think>" * 100_000,
        "```python\n" * 50_000,
        "(" * 150_000,
        "@x\n" * 60_000,
        "def f(:\n" * 20_000,
        '"""\n' * 50_000 + "x",
        "x = '''\ny\n" * 20_000,
        "#\n" * 100_000 + "(",
        " " * 200_000 + "x",
        "`" * 200_000,
        "“" * 200_000,
        "-" * 100_000 + "1",
        "class A(nn.Module):\n  def forward(self): return B\n" * 4000,
        WHOLE * 200,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_absurd_answers_are_read_in_time(text):
    began = time.monotonic()
    try:
        extract(text, "length")
    except Unusable as unusable:
        assert unusable.reason
    assert time.monotonic() - began < 10


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [*WHOLE.split("\n"), "```", "```python", "~~~", "Prose, it's", "\t", "<think>", "</think>", "“", "@", '"""']
        ),
        max_size=40,
    ),
    st.booleans(),
)
def test_whatever_comes_is_code_or_a_reason(lines, cut):
    try:
        code = extract("\n".join(lines), "length" if cut else "stop")
    except Unusable as unusable:
        assert unusable.reason and (unusable.line is None or 1 <= unusable.line <= len(lines))
    else:
        assert code.class_name in defined(code)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(WHOLE)), st.text(max_size=3), st.booleans())
def test_damage_anywhere(at, put, cut):
    for text in (WHOLE[:at], WHOLE[:at] + put + WHOLE[at:], fenced(WHOLE)[:at]):
        try:
            assert extract(text, "length" if cut else "stop").source
        except Unusable as unusable:
            assert unusable.reason
