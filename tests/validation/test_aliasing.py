from __future__ import annotations

import torch

from kernel_lsp.validation.aliasing import overlap, shared


def test_views_and_the_same_tensor_share_memory_and_interleaved_elements_do_not():
    x = torch.randn(4, 6)
    assert overlap(x, x) and overlap(x, x[1:, ::2]) and overlap(x.t(), x[0])
    assert not overlap(x[:, ::2], x[:, 1::2]) and not overlap(x, x.clone()) and not overlap(x[:2], x[2:])


def test_pairs_count_inputs_first_and_then_outputs():
    x, y = torch.randn(3), torch.randn(3)
    assert shared([y, x.view(3, 1), y], [x]) == [[1, 0], [2, 1]]
    assert shared([torch.empty(0), y + 1], [x, y]) == []
