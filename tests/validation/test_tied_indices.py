"""Indices that choose other elements than eager: as good where these are equal within rounding, and only there."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from kernel_lsp.validation import tied_indices
from kernel_lsp.validation.oracle import Oracle
from kernel_lsp.validation.trees import tensors_of


class Chooses(torch.nn.Module):
    """What ``how`` chooses of x / ``divisor``; of x where that is None."""

    def __init__(self, how, divisor) -> None:
        super().__init__()
        self.how, self.divisor = how, divisor

    def forward(self, x):
        return self.how(x if self.divisor is None else x / self.divisor)


def settled(how, x, mine, wide=True, divisor=3, precision="strict"):
    """What is compared in place of ``mine``, and eager's own; ``wide``: with float64. ``precision``: that was asked for."""
    oracle = Oracle(Chooses(how, divisor), [])
    reference = oracle.answer(((x,), {}))
    if not wide:
        reference.exact = None
    referee = SimpleNamespace(oracle=oracle, held_to=precision, progress=SimpleNamespace(limits=[]))
    found = tied_indices.settled(referee, mine, reference, ((x,), {}), False)
    same = all(map(torch.equal, tensors_of(found), tensors_of(mine)))
    assert (tied_indices.OTHERS in referee.progress.limits) == (not same)
    return found, reference.eager


ROW = torch.tensor([1.0, 5.0, 5.000001, 4.9, 0.0])


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    ("how", "other", "wrong"),
    [
        (lambda v: v.argmax(), 1, 3),
        (lambda v: v.argmax(-1, keepdim=True).int(), [1], [0]),
        (lambda v: (-v).min(0).indices, 1, 4),
        (lambda v: v.topk(2)[1], [1, 2], [2, 3]),
        (lambda v: v.topk(2)[1], [1, 2], [1, 1]),
        (lambda v: v.topk(2)[1][None], [[1, 2]], [[2, 5]]),
        (lambda v: v.sort(descending=True)[1], [1, 2, 3, 0, 4], [2, 1, 0, 3, 4]),
        (lambda v: v.topk(1)[1], [1], [-1]),
    ],
)
def test_an_element_that_is_equal_within_rounding_is_as_good_and_no_other(how, other, wrong, wide):
    for mine, good in ((other, True), (wrong, False)):
        given = torch.tensor(mine, dtype=how(ROW).dtype)
        found, eager = settled(how, ROW, given, wide)
        assert torch.equal(found, eager) == good, mine


@pytest.mark.parametrize("wide", [True, False])
def test_after_a_cast_to_float32_that_float64_makes_too(wide):
    for mine, good in (([1, 2], True), ([2, 3], False)):
        found, eager = settled(lambda v: v.float().topk(2)[1], ROW, torch.tensor(mine), wide)
        assert torch.equal(found, eager) == good, mine
    # eager rounds the values to bfloat16 first, as float64 does not
    row = torch.tensor([1.0, 5.0, 5.003, 4.5, 0.0]).bfloat16()
    for mine, good in (([2], True), ([3], False)):
        found, eager = settled(lambda v: v.float().topk(1)[1], row, torch.tensor(mine), wide)
        assert torch.equal(found, eager) == good, mine
    # nothing is rounded there
    found, eager = settled(lambda v: v.float().topk(2)[1], ROW, torch.tensor([1, 2]), wide, divisor=None)
    assert not torch.equal(found, eager)


def test_along_the_first_dimension():
    x = ROW[:, None].repeat(1, 3)
    found, eager = settled(lambda v: v.topk(2, dim=0)[1], x, torch.tensor([[1, 2, 1], [2, 1, 0]]))
    assert found.tolist() == [[2, 2, 2], [1, 1, 0]] and eager.tolist() == [[2, 2, 2], [1, 1, 1]]


@pytest.mark.parametrize("wide", [True, False])
def test_nothing_is_allowed_where_nothing_was_rounded(wide):
    found, eager = settled(lambda v: v.argmax(), ROW, torch.tensor(1), wide, divisor=None)
    assert (found.item(), eager.item()) == (1, 2)


def test_of_elements_that_are_equal_in_both_precisions_argmax_gives_the_first():
    x = torch.tensor([0.0, 7.0, 7.0])
    for how, good in ((lambda v: v.argmax(), False), (lambda v: v.topk(1)[1][0], True)):
        eager = how(x / 3)
        found, _ = settled(how, x, 3 - eager)
        assert torch.equal(found, eager) == good


def test_large_numbers_of_a_mask_do_not_count_as_the_scale():
    masked = torch.tensor([False, False, False, True, False])
    found, eager = settled(lambda v: v.masked_fill(masked, -1e9).argmax(), ROW, torch.tensor(0))
    assert (found.item(), eager.item()) == (0, 2)


def test_a_largest_value_near_zero_has_the_rounding_of_the_products_it_is_a_sum_of():
    weight = torch.tensor([[4.0, 4.0, 4.0, 0.0, 0.0], [-4.0, -4.0004, -4.1, -4.0, -5.0]])
    how = lambda x: (x @ weight.to(x.dtype)).argmax(-1)  # noqa: E731
    x = torch.tensor([[3.0, 3.0]])  # the products: 0, -0.0012, -0.3, -12 and -15
    for mine, precision, good in ((1, "tf32", True), (2, "tf32", False), (1, "strict", False)):
        found, eager = settled(how, x, torch.tensor([mine]), divisor=None, precision=precision)
        assert torch.equal(found, eager) == good, (mine, precision)


def test_integers_that_are_no_indices_are_left_as_they_are():
    found, _ = settled(lambda v: v.long(), ROW, torch.tensor([0, 1, 1, 1, 1]))
    assert found.tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_is_chosen_after_a_choice_that_float64_makes_otherwise_has_no_tolerance(dtype):
    x = torch.randn(64, 32, generator=torch.Generator().manual_seed(0)).to(dtype)
    anything = torch.rand(64, 32, generator=torch.Generator().manual_seed(1)).topk(4)[1]
    found, eager = settled(of_the_best_groups, x, anything)
    assert torch.equal(found[found != eager], anything[found != eager]) and (found != eager).float().mean() > 0.9


def of_the_best_groups(v):
    """Of 8 groups of 4 the three with the largest sums, and of these the four largest. v: [n, 32] → int64 [n, 4]."""
    p = v.softmax(-1)
    groups = p.view(-1, 8, 4)
    kept = torch.zeros_like(groups[..., 0]).scatter(1, groups.sum(-1).topk(3)[1], 1)
    return p.masked_fill(kept[..., None].expand_as(groups).reshape(p.shape) == 0, 0).topk(4)[1]


@pytest.mark.parametrize("divisor", [3, 1000])
def test_where_eager_is_useless_not_any_element_is_as_good(divisor):
    x = torch.tensor([1.0, 3.0, 2.0, 1.0], dtype=torch.float16)
    found, _ = settled(lambda v: ((v + 2048) - 2048).argmax(), x, torch.tensor(2), divisor=divisor)
    assert found.item() == 2


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        (lambda v: v.argmax(-1), 0),
        (lambda v: (-v).argmin(-1), 0),
        (lambda v: (-v).min(-1)[1], 1),
        (lambda v: v.topk(2)[1], [2, 1]),
        (lambda v: v.topk(2)[1], [2, 3]),
    ],
)
def test_no_finite_element_is_as_good_as_an_infinity(how, wrong, wide):
    x = torch.tensor([[1.0, 5.0, 5.000001, torch.inf], [0.0, 1.0, 2.0, 3.0]]).bfloat16()
    eager = how(x / 3)
    mine = torch.stack([torch.tensor(wrong), eager[1]])
    found, _ = settled(how, x, mine, wide)
    assert found[0].reshape(-1)[0] != 3 and eager[0].reshape(-1)[0] == 3


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
def test_small_values_among_large_ones_are_told_apart(dim, wide):
    x = torch.tensor([[1e-6, 2e-6, 3e-6], [1.0, 5.0, 5.000001], [1.0, 3.0, 2.0]])
    x = x if dim else x.T
    for how in (lambda v: v.argmax(dim), lambda v: v.max(dim)[1]):
        found, eager = settled(how, x, torch.tensor([0, 1, 1]), wide)
        assert (found.tolist(), eager.tolist()) == ([0, 2, 1], [2, 2, 1])
    firsts, two = torch.tensor([[0, 1], [1, 2], [1, 2]]), lambda v: v.topk(2, dim)[1]
    found, _ = settled(two, x, firsts if dim else firsts.T.contiguous(), wide)
    assert (found if dim else found.T).tolist() == [[0, 1], [2, 1], [1, 2]]


@pytest.mark.parametrize(("stable", "good"), [(True, False), (False, True)])
def test_a_sort_promises_the_order_of_equal_elements_where_it_is_asked_to(stable, good):
    x = torch.tensor([7.0, 0.0, 7.0])
    found, eager = settled(lambda v: torch.sort(v, stable=stable)[1], x, torch.tensor([1, 2, 0]))
    assert eager.tolist() == [1, 0, 2] and torch.equal(found, eager) == good


@pytest.mark.parametrize(
    ("how", "good"),
    [
        (lambda v: v[:6].argmax(), False),
        (lambda v: v.view(2, 4)[:, :3].reshape(-1).argmax(), False),
        (lambda v: torch.cat([v[:4], v[5:]]).clamp(0, 9).argmax(), False),
        (lambda v: torch.where(v > 4, v, 0).argmax(), False),
        (lambda v: (v[:6] / 3).argmax(), True),
        (lambda v: v.clone().div_(3).argmax(), True),
        (lambda v: v.masked_fill(v.sigmoid() < 0.1, 0).argmax(), True),
        (lambda v: v.double().argmax(), False),
        (lambda v: torch.nn.functional.pad(v, (0, 2)).max(0)[1], False),
        (lambda v: (v / 3).reshape(2, 4).flip(0).flip(0).flatten().topk(1)[1][0], True),
    ],
)
def test_without_float64_it_is_followed_what_was_rounded(how, good):
    x = torch.tensor([5.0, 5.00005, 1.0, 0.0, 0.5, 2.0, 3.0, 4.0])
    found, eager = settled(how, x, torch.tensor(0), False, divisor=None)
    assert eager.item() == 1 and (found.item() == 1) == good


ROWS = torch.stack([ROW, ROW.flip(0), torch.tensor([3.0, 1.0, 2.0, 3.000001, 0.0])])


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    ("how", "other", "wrong"),
    [
        (lambda v: list(v.max(-1)[1]), [1, 3, 0], [1, 3, 2]),
        (lambda v: v.argmax(-1)[1], 3, 1),
        (lambda v: v.argmax(-1)[::2], [1, 0], [1, 1]),
        (lambda v: v.topk(2)[1][:, 0], [1, 3, 0], [3, 3, 0]),
        (lambda v: v.topk(2)[1][1:].T, [[3, 0], [2, 3]], [[3, 0], [3, 3]]),
        (lambda v: v.argmax(-1)[:, None].expand(3, 2), [[1, 1], [3, 3], [0, 0]], [[1, 0], [3, 3], [0, 0]]),
    ],
)
def test_a_part_of_what_was_chosen_is_held_to_its_own_rows(how, other, wrong, wide):
    for mine, good in ((other, True), (wrong, False)):
        given = [torch.tensor(row) for row in mine] if isinstance(how(ROWS), list) else torch.tensor(mine)
        found, eager = settled(how, ROWS, given, wide)
        pairs = list(zip(found, eager, strict=True)) if isinstance(eager, list) else [(found, eager)]
        assert all(torch.equal(*pair) for pair in pairs) == good, mine


def test_a_part_of_what_was_chosen_has_another_rows_element_as_little_as_the_whole():
    found, eager = settled(lambda v: v.argmax(-1)[:2], ROWS, torch.tensor([1, 1]))
    assert (found.tolist(), eager.tolist()) == ([2, 1], [2, 2])


def test_of_several_nan_topk_may_choose_any_and_argmax_the_first():
    row = torch.tensor([1.0, math.nan, 2.0, math.nan, math.nan])
    for how, mine, good in (
        (lambda v: v.topk(2)[1], [1, 3], True),
        (lambda v: v.topk(2)[1], [4, 3], True),
        (lambda v: v.topk(2)[1], [1, 2], False),
        (lambda v: v.argmax(-1, keepdim=True), [1], True),
        (lambda v: v.argmax(-1, keepdim=True), [3], False),
    ):
        found, eager = settled(how, row, torch.tensor(mine), True)
        assert torch.equal(found, eager) == good, mine


@pytest.mark.parametrize(
    ("how", "other", "wrong"),
    [
        (lambda v: torch.cat([v.argmax()[None], v.new_full((1,), 7, dtype=torch.long)]), [1, 7], [1, 8]),
        (lambda v: torch.cat([(v * 0.5).topk(2)[1], v.topk(1)[1]]), [1, 2, 1], [1, 1, 1]),
        (lambda v: torch.stack([v.argmax(), v.argmin()]).int(), [1, 4], [3, 4]),
        (lambda v: torch.stack([v, v * 2], 1).max(0)[1][None] + 10, [[11, 12]], [[1, 12]]),
        (lambda v: v.topk(3)[1][[2, 0, 1]], [3, 1, 2], [3, 1, 1]),
        (
            lambda v: v.new_zeros(3, dtype=torch.long).index_fill(0, torch.tensor(1), 4) + v.argmax(),
            [2, 6, 2],
            [2, 5, 2],
        ),
    ],
)
def test_indices_in_other_places_or_with_a_number_added(how, other, wrong):
    expected = how(ROW / 3)
    for mine, good in ((other, True), (wrong, False)):
        found, eager = settled(how, ROW, torch.tensor(mine, dtype=expected.dtype))
        assert torch.equal(found, eager) == good, mine


def test_of_two_choices_the_second_has_a_tolerance_where_it_does_not_follow_from_the_first():
    x = torch.tensor([[1.0, 1.0], [5.0, 5.000001]])
    scale = torch.tensor(
        [1.0, 1.0 + 1e-9], dtype=torch.float64
    )  # in float64 the second is the largest, in float32 both are

    def apart(v):
        first = (v[0] * scale.to(v.dtype)).argmax()
        return torch.stack([first, v[1].argmax()])

    def after(v):
        first = (v[0] * scale.to(v.dtype)).argmax()
        return torch.stack([first, (v[1] + first * 0).argmax()])

    for how, good in ((apart, True), (after, False)):
        found, eager = settled(how, x, torch.tensor([0, 0]))
        assert torch.equal(found, eager) == good, how.__name__


def test_a_number_of_a_table_beside_an_index_is_another_for_another_index():
    table = torch.tensor([100, 200, 300, 400, 500])

    def how(v):
        index = v.argmax()[None]
        return index + table[index]

    found, eager = settled(how, ROW, torch.tensor([1 + 300]))
    assert found.tolist() == [301] != eager.tolist()


def test_what_python_read_of_a_choice_decides_what_follows():
    rows = torch.tensor([[1.0, 1.0, 0.0, 0.0], [5.0, 1.0, 2.0, 3.0], [1.0, 6.0, 2.0, 4.0]])
    scale = torch.tensor([1.0, 1.0 + 1e-9, 1.0, 1.0], dtype=torch.float64)

    def how(v):  # in float64 the second of the equal ones is the largest, and another row is read
        first = int((v[0] * scale.to(v.dtype)).argmax())
        return torch.stack([torch.tensor(first), v[1 + first].div(3).argmax()])

    found, _ = settled(how, rows, torch.tensor([0, 1]))
    assert found.tolist() == [0, 1]
