"""What a candidate's results are held to where rounding decides what the module chooses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from kernel_lsp.validation import agreement
from kernel_lsp.validation.oracle import Oracle

FIRST = torch.linspace(0.5, 2, 8)
EXPERTS = torch.stack([FIRST, 0.5 * FIRST, FIRST.flip(0), -2 * FIRST])


class Routed(torch.nn.Module):
    """Of ``EXPERTS`` the one that is most probable for each row, weighted; [n, 4] → [n, 8]."""

    def forward(self, x):
        weights, chosen = x.softmax(-1).max(-1)
        return weights[:, None] * EXPERTS.to(x.dtype)[chosen]


def compared_at_a_choice(module, x, out):
    """(whether ``out`` passes after all, what was said of it)."""
    referee = SimpleNamespace(
        oracle=Oracle(module, []),
        held_to="strict",
        mode="interpreter",
        progress=SimpleNamespace(limits=[], error=0.0, eager_error=0.0, check="", beyond=False),
    )
    tree = (x,), {}
    reference = referee.oracle.answer(tree)
    found = agreement.compared(referee, out, reference, tree=tree)
    assert not found.passed
    return agreement.but_for_choices(referee, out, reference, found, tree).passed, referee.progress.limits


def chosen_otherwise(x):
    """The result where each row gets the expert before its own."""
    weights, chosen = x.softmax(-1).max(-1)
    return weights[:, None] * EXPERTS[chosen - 1]


def equal_rows(scale=1e-8):
    """In float64 the first row chooses the second expert, the others the first; in float32, at this scale, all the first."""
    rows = torch.eye(4)[[1, 0, 0, 0, 0, 0]]
    return scale * rows


def test_where_experts_are_equal_within_rounding_another_is_as_good():
    x = equal_rows()
    assert compared_at_a_choice(Routed(), x, chosen_otherwise(x)) == (True, [agreement.UNDECIDED])


class Detected(torch.nn.Module):
    """The labels of all rows, the greatest scores first: indices that are looked up by others; [n, 4] → [n]."""

    def forward(self, x):
        scores, labels = x.sigmoid().max(-1)
        return labels.gather(0, scores.topk(len(x)).indices)


def _first_two(x):
    """In float64 the labels of the two rows differ, in float32 they are one; the other rows score more, and no rounding decides their labels."""
    return torch.cat([x[:2], torch.eye(4)[[2, 3, 2]] * torch.tensor([[3.0], [2.0], [1.0]])])


def test_labels_of_equal_scores_may_be_others():
    x = _first_two(equal_rows())
    exact = Detected().double()(x.double())
    passed, limits = compared_at_a_choice(Detected(), x, exact)
    assert passed and agreement.UNDECIDED in limits


def test_where_a_third_of_the_labels_is_undecided_the_order_may_be_another():
    x = torch.cat([equal_rows()[:2], 3 * torch.eye(4)[[2]]])
    passed, limits = compared_at_a_choice(Detected(), x, torch.tensor([2, 1, 1]))
    assert passed and agreement.UNDECIDED in limits
    assert compared_at_a_choice(Detected(), x, torch.tensor([2, 3, 1])) == (False, [])


@pytest.mark.parametrize(
    ("scale", "labels"),
    [(1.0, [2, 3, 2, 0, 0]), (1e-8, [2, 3, 2, 40, 40]), (1e-8, [2, 2, 2, 0, 0]), (1e-8, [1, 1, 1, 1, 1])],
)
def test_labels_that_rounding_does_not_decide_are_held_to(scale, labels):
    x = _first_two(equal_rows(scale))
    assert compared_at_a_choice(Detected(), x, torch.tensor(labels)) == (False, [])


def test_what_is_true_of_labels_that_rounding_decides_may_be_false():
    class Found(torch.nn.Module):
        def forward(self, x):
            return x.sigmoid().max(-1).indices == 1

    x = equal_rows()
    passed, _ = compared_at_a_choice(Found(), x, torch.tensor([True, False, False, False, False, False]))
    assert passed
    assert compared_at_a_choice(Found(), x, torch.tensor([False, True, False, False, False, False])) == (False, [])


@pytest.mark.parametrize(
    "spoil", [lambda y: 10 * y, lambda y: y.index_fill(0, torch.tensor([3]), 9.0), lambda y: y * torch.nan]
)
def test_what_is_larger_than_any_such_result_is_wrong(spoil):
    x = equal_rows()
    assert compared_at_a_choice(Routed(), x, spoil(Routed()(x))) == (False, [])


@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_where_experts_differ_another_is_wrong(scale):
    x = equal_rows(scale)
    assert compared_at_a_choice(Routed(), x, chosen_otherwise(x)) == (False, [])


def test_where_nothing_is_chosen_eagers_error_counts_as_ever():
    class Rounds(torch.nn.Module):
        def forward(self, x):
            return (x / 3 * 3e8).round()

    x = torch.linspace(0.5, 8, 16) * 1e-8
    assert compared_at_a_choice(Rounds(), x, 2.5 * Rounds()(x) + 2) == (False, [])


@pytest.mark.parametrize(
    ("held_to", "dtype", "said"),
    [
        ("strict", torch.float32, "fp32"),
        ("tf32", torch.float32, "tf32"),
        ("half", torch.float32, "half"),
        ("strict", torch.bfloat16, "bf16"),
    ],
)
def test_the_precision_is_what_a_kernel_was_held_to_however_large_its_error(held_to, dtype, said):
    """As for tiny values, where eager's own error is as large."""
    leaf = SimpleNamespace(example=torch.zeros(2, dtype=dtype))
    inputs = SimpleNamespace(leaves=[leaf], ops={"aten.linear": 1})
    progress = SimpleNamespace(error=7e-3, eager_error=7e-3, beyond=False)
    referee = SimpleNamespace(inputs=inputs, module=torch.nn.Linear(2, 2), progress=progress, held_to=held_to)
    assert agreement.precision(referee) == said


class Mixed(torch.nn.Module):
    """The sum of two experts, and how often each is chosen; of the scores in ``x``, and of ``y``, which nothing is chosen by."""

    def forward(self, x):
        weights, chosen = (x / 3).softmax(-1).topk(2)
        return (weights[..., None] * EXPERTS.to(x.dtype)[chosen]).sum(1), torch.nn.functional.one_hot(chosen, 4).sum(
            (0, 1)
        )


def mixed_otherwise(x, chosen):
    weights = (x / 3).softmax(-1).gather(-1, chosen)
    return (weights[..., None] * EXPERTS[chosen]).sum(1), torch.nn.functional.one_hot(chosen, 4).sum((0, 1))


def test_where_eager_and_float64_choose_alike_another_of_equal_experts_is_as_good():
    x = torch.tensor([[3.0, 1.0, 1.0, 1.0], [5.0, 4.0, 1.0, 0.0]])
    x[0, 1:] += 1e-6 * torch.tensor([2.0, 1.0, 0.0])
    for other, good in (([[0, 3], [0, 1]], True), ([[0, 1], [0, 2]], False), ([[1, 3], [0, 1]], False)):
        out = mixed_otherwise(x, torch.tensor(other))
        passed, limits = compared_at_a_choice(Mixed(), x, out)
        assert (passed, limits) == (good, [agreement.UNDECIDED] if good else []), other


def test_beside_such_a_choice_all_else_is_held_to():
    x = torch.tensor([[3.0, 1.0, 1.0, 1.0], [5.0, 4.0, 1.0, 0.0]])
    x[0, 1:] += 1e-6 * torch.tensor([2.0, 1.0, 0.0])
    values, counts = mixed_otherwise(x, torch.tensor([[0, 3], [0, 1]]))
    for spoiled in (
        (values + torch.tensor([[0.0], [0.1]]), counts),
        (values + torch.tensor([[9.0], [0.0]]), counts),
        (values, counts * torch.tensor([1, 1, 1, 9])),
        (values, counts - torch.tensor([1, 0, 0, 0])),
    ):
        assert compared_at_a_choice(Mixed(), x, spoiled) == (False, [])


class Sampled(torch.nn.Module):
    """As NeRF samples along a ray: the places of ``n`` numbers among running sums, with a jump where a step is short; [b, k] → [b, n]."""

    def __init__(self, n) -> None:
        super().__init__()
        self.n = n

    def forward(self, x):
        sums = (x / x.sum(-1, keepdim=True)).cumsum(-1)
        u = torch.linspace(0, 1, self.n, dtype=x.dtype).expand(len(x), self.n).contiguous()
        return x.gather(-1, torch.searchsorted(sums, u, right=True).clamp(max=x.shape[-1] - 1))


def test_another_side_of_a_bound_that_rounding_decides_is_as_good():
    x = torch.tensor([[1.0, 2.0, 5.0, 2.0]])
    right = Sampled(11)(x)  # 0.3 is a running sum but for rounding, 0.5 is far from any
    for at, taken, good in ((3, 2.0, True), (5, 2.0, False), (3, 60.0, False)):
        other = right.index_fill(1, torch.tensor(at), taken)
        assert compared_at_a_choice(Sampled(11), x, other) == (good, [agreement.UNDECIDED] if good else []), (at, taken)


def test_where_nothing_was_rounded_a_bound_decides():
    class Steps(torch.nn.Module):
        def forward(self, x):
            return torch.where(x < 2, x, 5 * x)

    x = torch.tensor([1.0, 2.0, 3.0])
    assert compared_at_a_choice(Steps(), x, torch.tensor([1.0, 2.0, 15.0])) == (False, [])


class Bounded(torch.nn.Module):
    """A mean of elements that jump at a bound; [b, k] → []."""

    def forward(self, x):
        error = (x / x.sum(-1, keepdim=True) - 0.25).abs() * 10
        return torch.where(error < 1, error, 2 * error).mean()


def test_a_sum_of_what_rounding_decides_is_held_to_what_the_other_side_changes():
    torch.manual_seed(0)
    x = torch.rand(512, 4) + 0.5
    x[:4, 3] = x[:4, :3].sum(-1) * 0.35 / 0.65  # a share of 0.35: the error is 1 but for rounding
    right = Bounded()(x)
    for share in (0.5, 0.9, 1.1, 0.0):
        assert compared_at_a_choice(Bounded(), x, right * share) == (False, []), share


class Quantized(torch.nn.Module):
    """Whole numbers of ``x``, as a quantizer has them."""

    def __init__(self, how, dtype) -> None:
        super().__init__()
        self.how, self.dtype = how, dtype

    def forward(self, x):
        return self.how(x).to(self.dtype)


@pytest.mark.parametrize(
    ("how", "dtype", "size", "shape"),
    [
        (lambda x: (x * 3.1).round(), torch.bfloat16, 60.0, (32,)),
        (lambda x: (x * 3.1).round(), torch.bfloat16, 6e3, (32,)),
        (lambda x: (x * 3.1).floor(), torch.float32, 1e8, (32,)),
        (lambda x: (x / 0.03).round().clamp(-128, 127), torch.bfloat16, 3.0, (7, 19)),
    ],
)
def test_whole_numbers_that_rounding_moves_are_held_to_what_they_move_to(how, dtype, size, shape):
    for seed in range(5):
        torch.manual_seed(seed)
        x = (torch.randn(shape) * size).to(dtype)
        module = Quantized(how, torch.int32)
        right = module(x)
        tail = right.clone()
        tail[..., -3:] = right.max()
        for wrong in (right.flip(-1), torch.full_like(right, int(right.max())), tail):
            assert compared_at_a_choice(module, x, wrong) == (False, [])


def test_results_in_float8_are_told_apart():
    torch.manual_seed(0)
    x = torch.randn(7, 19, dtype=torch.bfloat16) * 9
    module = Quantized(lambda x: (x / 1.7).round(), torch.float8_e4m3fn)
    wrong = module(x).view(torch.uint8).flip(-1).contiguous().view(torch.float8_e4m3fn)
    assert compared_at_a_choice(module, x, wrong) == (False, [])


def test_a_bound_that_clamps_is_no_rounding():
    class Saturated(torch.nn.Module):
        def forward(self, x):
            h = torch.nn.functional.hardtanh(x / 3)
            return torch.where(h >= 1, 0.0, h)

    for seed in range(20):
        torch.manual_seed(seed)
        x = torch.randn(16) * 2
        x[3] = 7.0
        h = torch.nn.functional.hardtanh(x / 3)
        assert compared_at_a_choice(Saturated(), x, torch.where(h > 1, 0.0, h)) == (False, [])
