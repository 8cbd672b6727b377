from __future__ import annotations

import torch

from kernel_lsp.validation.aliasing import Earlier, overlap, shared


def test_views_and_the_same_tensor_share_memory_and_interleaved_elements_do_not():
    x = torch.randn(4, 6)
    assert overlap(x, x) and overlap(x, x[1:, ::2]) and overlap(x.t(), x[0])
    assert not overlap(x[:, ::2], x[:, 1::2]) and not overlap(x, x.clone()) and not overlap(x[:2], x[2:])


def test_pairs_count_inputs_first_and_then_outputs():
    x, y = torch.randn(3), torch.randn(3)
    assert shared([y, x.view(3, 1), y], [x]) == [[1, 0], [2, 1]]
    assert shared([torch.empty(0), y + 1], [x, y]) == []


def test_a_result_in_the_memory_of_one_long_before_is_found() -> None:
    earlier, buffer = Earlier(), torch.zeros(4)
    earlier.add([buffer], [])
    for _ in range(10):
        earlier.add([torch.zeros(4)], [])
    assert earlier.shares([buffer[1:]], [])
    assert not earlier.shares([torch.zeros(4)], [])


def test_a_view_of_an_input_is_not_remembered() -> None:
    earlier, given = Earlier(), torch.zeros(4)
    earlier.add([given[:2]], [given])
    assert not earlier.shares([given], [])


def test_what_is_remembered_is_bounded() -> None:
    earlier = Earlier()
    for _ in range(40):
        earlier.add([torch.empty(1 << 20)], [])
    assert earlier.bytes <= 64 << 20 and len(earlier.calls) == 16
    earlier.add([torch.empty(1 << 25)], [])
    assert not earlier.calls
