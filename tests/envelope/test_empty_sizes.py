"""Which sizes may be zero where every size of a tensor is at least one."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, Mod

from kernel_lsp.envelope.empty_sizes import divisor_conditions, may_vanish

n, m = sympy.symbols("n m", integer=True, positive=True)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (n, False),
        (n * m, False),
        (2 * n - 1, False),
        (n * m - n, True),
        (n - 1, True),
        (n + m - 1, False),
        (n - m, True),
        (FloorDiv(n, 2), True),
        (FloorDiv(n + 14, 16), True),
        (16 * FloorDiv(n + 15, 16), False),
        (FloorDiv(n - 1, 2), True),
        (sympy.Integer(0), True),
        (sympy.Integer(3), False),
    ],
)
def test_sizes(size: sympy.Expr, expected: bool) -> None:
    assert may_vanish(size) == expected


def test_what_divides_stands_before_what_it_divides() -> None:
    names = {n: "x.shape[0]", m: "x.shape[1]"}
    inner = FloorDiv(m, n - 1)
    assert divisor_conditions(Mod(n * m, inner), names) == [
        "x.shape[0] - 1 > 0",
        "(x.shape[1] // (x.shape[0] - 1)) > 0",
    ]
    assert divisor_conditions(FloorDiv(n, m), names) == []
