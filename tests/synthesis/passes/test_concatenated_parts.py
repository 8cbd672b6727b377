"""Concatenations of products: which kernels store their pieces."""

from __future__ import annotations

from unittest import mock

import pytest

from kernel_lsp.synthesis import stages
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.value import Value
from kernel_lsp.synthesis.passes import concatenation_steps
from kernel_lsp.synthesis.passes.regions import Planner
from kernel_lsp.synthesis.schedule.target import target
from tests.synthesis.cases import CASES


def seen(case: str) -> tuple[list[bool], stages.Planned]:
    """Whether products stored their pieces, each time that this was tried, and the plan."""
    one, answers = CASES[case], []
    store = concatenation_steps._store_each_product

    def spy(planner: Planner, value: Value) -> bool:
        answers.append(store(planner, value))
        return answers[-1]

    with mock.patch.object(concatenation_steps, "_store_each_product", spy):
        exported = capture(one.kind(*one.init).eval(), tuple(one.inputs(0)))
        planned = stages.planned(stages.lowered(exported, on=target("H100"), halves=one.halves))
    return answers, planned


@pytest.mark.parametrize("case", ["cat_fire", "cat_linear", "cat_products_of_batches", "cat_fire_softmax"])
def test_products_store_their_pieces(case: str) -> None:
    answers, planned = seen(case)
    assert answers == [True]
    assert sum(kernel.one_piece for kernel in planned.kernels) == 2


def test_kernels_of_pieces_that_float16_does_not_hold_store_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for pays in ("float16_pays", "pointwise_pays"):
        monkeypatch.setattr(stages, pays, lambda *_: True)
    answers, planned = seen("cat_fire_huge")
    assert True in answers and any(kernel.one_piece and kernel.exact for kernel in planned.kernels)


@pytest.mark.parametrize(
    "case", ["cat_linear_and_more", "cat_linear_kept", "cat_linear_twice", "cat_linear_cumsum", "stack_products"]
)
def test_other_concatenations_are_copied(case: str) -> None:
    answers, planned = seen(case)
    assert not answers and not any(kernel.one_piece for kernel in planned.kernels)


def test_what_does_not_fit_is_tried_once_at_each_level() -> None:
    """Each level was planned twice, so that 10 of them took 1023 attempts."""
    answers, planned = seen("cat_shares")
    assert answers == [False] * 3 and not any(kernel.one_piece for kernel in planned.kernels)
