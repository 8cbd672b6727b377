"""Kernels have nothing in them that does nothing: by the syntax trees of the texts in ``golden/``."""

from __future__ import annotations

import pytest

from tests.synthesis import golden
from tests.synthesis.text_checks import superfluous

TEXT = """
@triton.jit
def add_kernel(x_ptr, out_ptr, n, k, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + cols, mask=mask)
    {}
    tl.store(out_ptr + cols, x, mask=mask)

def add(x):
    add_kernel[(1,)](x, out, n={}, k=3, BLOCK=64, num_warps=4)
"""


@pytest.mark.parametrize("rest", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_text_has_what_does_nothing(rest: bool):
    names = [name for name in golden.NAMES if (name in golden.REST) == rest]
    assert len(names) > 200
    found = {name: superfluous((golden.FOLDER / f"{name}.txt").read_text("utf-8")) for name in names}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        *(
            "y = x * 1.0",
            "y = tl.div_rn(x * 1.0, n)",
            "y = 1 * x",
            "y = x - 0.0",
            "y = cols + 0",
            "y = x / 1.0",
            "y = mask & True",
            "y = False | mask",
        ),
        *("y = mask & mask", "y = tl.where(True, x, y)", "y = tl.arange(0, 4) < 4", "y = cols[None, :] < 64"),
        "y = tl.load(x_ptr + cols, mask=mask)",
        "for i in range(3):\n        y = tl.load(x_ptr + cols, mask=mask)",
    ],
)
def test_what_does_nothing_is_found(line: str):
    assert len(superfluous(TEXT.format(line, 60))) == 1


@pytest.mark.parametrize(
    "line",
    [
        *("y = x + 0.0", "y = x * 0.0", "y = x * 2.0", "y = 1.0 / x", "y = 0.0 - x", "y = cols < k", "y = cols < n"),
        "y = tl.div_rn(x, n * 1.0)",
        "y = tl.load(x_ptr + cols + 1, mask=mask)",
        "mask = cols < k\n    y = tl.load(x_ptr + cols, mask=mask)",
        "tl.store(x_ptr + cols, x)\n    y = tl.load(x_ptr + cols, mask=mask)",
    ],
)
def test_what_does_something_is_not(line: str):
    assert superfluous(TEXT.format(line, 60)) == []
    assert superfluous(TEXT.format(line, 64)) != []  # the mask of the text
