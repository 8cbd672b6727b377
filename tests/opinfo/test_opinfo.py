"""A part of PyTorch's operators as `make test-opinfo` validates them all; more of what is right, under `make test-slow` and `make test-cases`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from .compare import difference
from .record import Record
from .run import Process
from .sample import CRASH, EAGER, NOT_LOWERED, RIGHT, WIDE, WRONG, Outcome, Sample, validate
from .table import text

#: (name, variant): one of each kind of lowering
FEW = [
    ("add", ""),
    ("nn.functional.glu", ""),
    ("floor_divide", ""),
    ("logaddexp", ""),
    ("softmax", ""),
    ("std_mean", ""),
    ("einsum", ""),
    ("squeeze", ""),
    ("reshape", ""),
    ("index_select", ""),
    ("nan_to_num", ""),
    ("amax", ""),
    ("where", ""),
    ("addcdiv", ""),
]
#: more of them, for `make test-slow`, and those of tests/alike.txt for `make test-cases` and `make test-opinfo-sample`
MORE = [
    (name, "")
    for name in [
        "abs",
        "acosh",
        "asinh",
        "atan2",
        "atanh",
        "bitwise_and",
        "bitwise_not",
        "broadcast_to",
        "clamp",
        "copysign",
        "cosh",
        "count_nonzero",
        "deg2rad",
        "dot",
        "erfc",
        "exp2",
        "expand",
        "expm1",
        "flip",
        "fmax",
        "fmod",
        "frac",
        "heaviside",
        "hypot",
        "isfinite",
        "isinf",
        "isnan",
        "ldexp",
        "lerp",
        "linalg.vector_norm",
        "log10",
        "logical_xor",
        "logit",
        "logsumexp",
        "masked_fill",
        "mean",
        "mm",
        "mul",
        "mv",
        "nansum",
        "nn.functional.hardshrink",
        "nn.functional.huber_loss",
        "nn.functional.layer_norm",
        "nn.functional.linear",
        "nn.functional.softsign",
        "nn.functional.threshold",
        "outer",
        "permute",
        "pow",
        "reciprocal",
        "remainder",
        "round",
        "rsqrt",
        "sgn",
        "sigmoid",
        "sign",
        "signbit",
        "sinc",
        "stack",
        "sum",
        "t",
        "take_along_dim",
        "tril",
        "true_divide",
        "unbind",
        "var",
        "xlogy",
        "zeros_like",
    ]
]


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    one = Process()
    yield one
    one.end()


@pytest.mark.parametrize(("name", "variant"), FEW)
def test_few(name: str, variant: str, process: Process) -> None:
    check(process, name, variant, most=2)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), MORE)
def test_more(name: str, variant: str, process: Process) -> None:
    check(process, name, variant, most=2)


def check(process: Process, name: str, variant: str, most: int) -> None:
    rows = process.ask(name, variant, most)
    bad = [row for row in rows if row["kind"] in (WRONG, CRASH, WIDE)]
    assert not bad, bad
    assert any(row["kind"] == RIGHT for row in rows), rows


def test_what_differs_is_found() -> None:
    one = torch.tensor([1.0, float("nan"), float("inf")])
    assert difference(one, one.clone(), one.double()) == ""
    for i, other in ((0, 1.1), (1, 0.0), (2, float("-inf"))):
        changed = one.clone()
        changed[i] = other
        assert difference(changed, one, one.double()).startswith("1 of 3")
    assert "float64" in difference(one.double(), one, one)
    assert "[3, 1]" in difference(one[:, None], one, one)
    assert difference((one,), (one, one), (one, one)) == "1 results for 2"
    assert difference(torch.tensor([2]), torch.tensor([3]), torch.tensor([3])) == "1 of 1: 2 for 3"


def test_what_has_no_lowering_and_what_varies() -> None:
    x = torch.randn(4, 5)
    assert validate(Sample([x], lambda x: torch.sort(x, 0))).kind == NOT_LOWERED
    assert validate(Sample([x], torch.rand_like)) == Outcome(EAGER, "its results vary")
    assert validate(Sample([torch.empty(0, 3)], torch.exp)).detail.startswith("an empty tensor")
    assert "sparse" in validate(Sample([x], torch.Tensor.to_sparse)).detail


def test_the_table_counts() -> None:
    def row(name: str, kind: str) -> dict[str, object]:
        return {"name": name, "variant": "", "index": 0, "kind": kind, "detail": "a|b", "inputs": "nan"}

    page = text(
        [row("add", RIGHT), row("add", NOT_LOWERED), row("sub", RIGHT), row("mul", WRONG), row("qr", NOT_LOWERED)],
        10**6,
    )
    assert "2 of 4 operators are lowered" in page and "1 of them for every sample" in page
    assert "| mul | 0 | nan | wrong: a\\|b |" in page and "`add` (in part), `sub`" in page and page.endswith("`qr`\n")


def test_a_run_goes_on_where_another_ended(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first = Record(path)
    first.add(("add", ""), [{"index": 0}])
    first.add(("div", "floor"), [])
    with path.open("a") as file:
        file.write('["sub", "", [{"ind')
    again = Record(path)
    assert again.rows == {("add", ""): [{"index": 0}], ("div", "floor"): []}
    again.add(("sub", ""), [{"index": 1}])
    assert Record(path, {"add"}).rows == {("div", "floor"): [], ("sub", ""): [{"index": 1}]}
    assert ("add", "") not in Record(path).rows
