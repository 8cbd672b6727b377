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


def test_a_size_that_was_looked_at_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each schedule of a module asks for the same sizes, and each look takes sympy a millisecond or more."""
    looks = []
    monkeypatch.setattr(sympy, "Poly", lambda *given, of=sympy.Poly: looks.append(given) or of(*given))
    rows, cols = sympy.symbols("rows_asked_twice cols_asked_twice", integer=True, positive=True)
    assert [may_vanish(rows * cols - 1) for _ in range(2)] == [True, True]
    assert [may_vanish(cols * rows) for _ in range(2)] == [False, False]
    assert len(looks) == 2
