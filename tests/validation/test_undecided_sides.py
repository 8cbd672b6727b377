"""What is moved where rounding decides on which side of a bound a number lies."""

from __future__ import annotations

import torch

from kernel_lsp.validation import undecided_sides
from kernel_lsp.validation.oracle import Oracle


class Placed(torch.nn.Module):
    """The places of numbers among running sums of shares, the last of which is 1 but for rounding; [b, k] → [b, 5]."""

    def forward(self, x):
        sums = (x / x.sum(-1, keepdim=True)).cumsum(-1)
        u = torch.linspace(0, 1, 5, dtype=x.dtype).expand(len(x), 5).contiguous()
        return torch.searchsorted(sums, u, right=True)


def test_running_sums_are_moved_also_where_they_are_one_by_luck_and_constants_are_not():
    torch.manual_seed(0)
    x = torch.rand(64, 12)
    sums = (x / x.sum(-1, keepdim=True)).cumsum(-1)
    assert (sums[:, -1] == 1).any()
    oracle, tree = Oracle(Placed(), []), ((x,), {})
    with undecided_sides._Given() as given:
        oracle.eager(tree, False)
    ((of_sums, of_numbers),) = undecided_sides._lives(oracle, tree, False, given.found)
    assert of_sums.float().mean() > 0.99
    assert not of_numbers.any()
    reference = oracle.answer(tree)
    others = [one[0] for one in undecided_sides.otherwise(oracle, tree, reference, False)]
    changed = torch.stack([other != reference.eager for other in others]).any(0)
    assert changed[:, 4].float().mean() > 0.9  # 1 among sums whose last is 1 but for rounding
    assert not changed[:, 0].any()
