"""Views and movement: strides, cuts, concatenation, margins, repetition, windows, nearest interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .registry import case, r

case("transposed_sum", lambda self, x, y: x.transpose(0, 1) + y, lambda n: [r(33 + n, 47), r(47, 33 + n)], kernels=1)
case("permuted", lambda self, x: torch.relu(x.permute(0, 2, 3, 1)), lambda n: [r(2, 5, 6 + n, 7)])
case(
    "merge_heads",
    lambda self, x: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1) * 2.0,
    lambda n: [r(2, 3, 6 + n, 8)],
)
case("sliced", lambda self, x: x[:, 2:-3] * x[:, 5:], lambda n: [r(6, 31 + n)])
case("every_other", lambda self, x: x[..., ::2] * x[..., 1::2], lambda n: [r(6 + n, 32)])
case("chunked_gate", lambda self, x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], lambda n: [r(5 + n, 64)])
case(
    "concatenated",
    lambda self, x, y: torch.cat([x, -y, x * y[:, : x.shape[1]]], 1),
    lambda n: [r(4 + n, 10), r(4 + n, 13)],
)
case(
    "split_to_a_row",  # of a size that is computed, and one
    lambda self, x, y: torch.minimum(torch.tensor_split(x, 2, 1)[1], y),
    lambda n: [r(3 + n, 2, 5), r(3 + n, 4, 5)],
    kernels=1,
)
case(
    "reshaped_to_a_row",
    lambda self, x: torch.cumsum(x.reshape(-1, 6), 0) * 2.0,
    lambda n: [r(2, 3)],
    kernels=1,
    steps=(0,),
)
case("stacked", lambda self, x, y: torch.stack([x, y], -1), lambda n: [r(4 + n, 10), r(4 + n, 10)])
case("flipped", lambda self, x: x.flip(-1) + x, lambda n: [r(4, 19 + n)])
case(
    "repeated_cut",  # the export divides by a quotient, which small sizes make 0
    lambda self, x: x.unflatten(1, (-1, 4)).flatten(0, 1) * 2.0,
    lambda n: [r(2, 8 + 4 * n, 6)],
    kernels=1,
)

# Margins, movement, repetition, windows.
case("zero_padded", lambda self, x: F.pad(x, (1, 2, 0, 1)) * 2.0, lambda n: [r(3, 5 + n, 17)], kernels=1)
case(
    "padded_by_a_number",
    lambda self, x: torch.exp(F.pad(x * 2.0, (3, 0), value=0.5)),
    lambda n: [r(4, 9 + n)],
    kernels=1,
)
case("padded_and_cropped", lambda self, x: F.pad(x, (-2, 1, 1, -1)) + 1.0, lambda n: [r(2, 6 + n, 9)], kernels=1)
case(
    "padded_integers",
    lambda self, x: F.pad(x, (1, 1), value=7) * 2,
    lambda n: [torch.arange(12 + n).view(2, -1)] if n % 2 == 0 else [torch.arange(12).view(3, 4)],
    kernels=1,
)
case(
    "padded_mask",
    lambda self, x, m: torch.where(F.pad(m, (1, 1), value=True), x, 0.0),
    lambda n: [r(3, 12 + n), r(3, 10 + n) > 0],
    kernels=1,
)
case("padded_half", lambda self, x: F.pad(x, (1, 1)) * 2.0, lambda n: [r(3, 12 + n).half()], kernels=1, tolerance=2e-3)
case("padded_mean", lambda self, x: F.pad(x, (2, 1), value=1.0).mean(-1), lambda n: [r(5, 18 + n)], kernels=1)
case(
    "padded_softmax",
    lambda self, x: torch.softmax(F.pad(x + 1.0, (1, 2), value=-1.0), -1),
    lambda n: [r(5, 18 + n)],
    kernels=1,
)
case(
    "padded_twice", lambda self, x: F.pad(F.pad(x, (1, 1)) + 1.0, (1, 1), value=2.0), lambda n: [r(3, 8 + n)], kernels=1
)
case("padded_after_a_sum", lambda self, x: F.pad(x.sum(-1), (1, 1)), lambda n: [r(6 + n, 40)])
case(
    "reflected", lambda self, x: F.pad(x, (2, 1, 1, 3), mode="reflect") * 2.0, lambda n: [r(2, 3, 6 + n, 7)], kernels=1
)
case(
    "replicated",
    lambda self, x: F.pad(x, (2, 0, 1, 3), mode="replicate") * 2.0,
    lambda n: [r(2, 3, 6 + n, 7)],
    kernels=1,
)
case("circular", lambda self, x: F.pad(x, (2, 1), mode="circular") * 2.0, lambda n: [r(2, 3, 6 + n)], kernels=1)
case("rolled", lambda self, x: x - x.roll(1, -1), lambda n: [r(4, 19 + n)], kernels=1)
case("rolled_back", lambda self, x: torch.roll(x, (-2, 5), (0, 1)) * 2.0, lambda n: [r(4 + n, 9)], kernels=1)
case("rolled_through", lambda self, x: torch.roll(x * 2.0, 3), lambda n: [r(4 + n, 9)], kernels=1)
case("rolled_mean", lambda self, x: (x * x.roll(2, -1)).mean(-1), lambda n: [r(6, 33 + n)], kernels=1)
case(
    "shifted_windows",
    lambda self, x: (
        x.roll((-2, -2), (1, 2)).view(x.shape[0], 2, 4, 3, 4, x.shape[-1]).permute(0, 1, 3, 2, 4, 5).softmax(-1)
    ),
    lambda n: [r(2, 8, 12, 6 + n)],
    kernels=1,
)
# What is permuted last is stored in the order that the copy has; torch's view would have another one.
case(
    "permuted_last",
    lambda self, x, y: (x * y).permute(0, 2, 1).contiguous(),
    lambda n: [r(2, 3 + n, 5), r(2, 3 + n, 5)],
    kernels=1,
)
case(
    "permuted_last_of_torch",
    lambda self, x: x.sort(-1).values.transpose(1, 2).contiguous(),
    lambda n: [r(2, 3 + n, 5)],
    kept=1,
    kernels=1,
)
case(
    "expanded_last",
    lambda self, x: (x * 2).mean(1, keepdim=True).expand(-1, 4, -1).contiguous(),
    lambda n: [r(2, 3 + n, 5)],
)
case("repeated", lambda self, x: x.repeat(2, 1, 3) + 1.0, lambda n: [r(4 + n, 9)], kernels=1)
case("tiled", lambda self, x: torch.tile(x, (3,)) * 2.0, lambda n: [r(4, 9 + n)], kernels=1)
case("repeated_elements", lambda self, x: x.repeat_interleave(3, 1) * 2.0, lambda n: [r(4, 5 + n, 6)], kernels=1)
case("repeated_flat", lambda self, x: torch.repeat_interleave(x + 1.0, 2), lambda n: [r(4, 5 + n)], kernels=1)
case("windows_mean", lambda self, x: x.unfold(-1, 4, 2).mean(-1), lambda n: [r(4, 21 + n)], kernels=1)
case("windows", lambda self, x: x.unfold(1, 3, 1) * 2.0, lambda n: [r(4, 11 + n, 5)], kernels=1)
case("on_the_diagonal", lambda self, x: x.diagonal(1, -2, -1) * 2.0, lambda n: [r(3, 8 + n, 9)], kernels=1)
case("below_the_diagonal", lambda self, x: torch.diagonal(x, -2).sum(-1), lambda n: [r(12, 9, 5 + n)])
case(
    "row_replaced",
    lambda self, x, y: torch.select_scatter(x, y, 1, 2) * 2.0,
    lambda n: [r(4, 5 + n, 6), r(4, 6)],
    kernels=1,
)
case(
    "part_replaced",
    lambda self, x, y: torch.slice_scatter(x, y, 1, 1, 4) * 2.0,
    lambda n: [r(4, 5 + n), r(4, 3)],
    kernels=1,
)
case("dimension_moved", lambda self, x: x.movedim(1, -1) * 2.0, lambda n: [r(4, 5 + n, 6)], kernels=1)
case(
    "dimensions_moved",
    lambda self, x: torch.movedim(x, (0, 1), (2, 0)).swapaxes(0, 1) * 2.0,
    lambda n: [r(4, 5 + n, 6)],
    kernels=1,
)
case("turned", lambda self, x: torch.rot90(x, 1, (1, 2)) + x.flipud(), lambda n: [r(4, 5 + n, 5 + n)])
case("pixels_shuffled", lambda self, x: F.pixel_shuffle(x, 2) * 2.0, lambda n: [r(2, 8, 3 + n, 5)], kernels=1)
case("pixels_unshuffled", lambda self, x: F.pixel_unshuffle(x + 1.0, 2), lambda n: [r(2, 3, 4 + 2 * n, 6)], kernels=1)
case("channels_shuffled", lambda self, x: F.channel_shuffle(x, 2) * 2.0, lambda n: [r(2, 6, 4 + n, 3)], kernels=1)
case("reshaped_across", lambda self, x, y: torch.exp((x + y).reshape(14, -1)), lambda n: [r(6, 35), r(35)], kernels=1)
case("reshaped_across_mean", lambda self, x: (x * 2.0).reshape(14, -1).mean(-1), lambda n: [r(6, 35)], kernels=1)
case(
    "product_of_padded", lambda self, a, b: F.pad(a, (0, 0, 1, 2)) @ b, lambda n: [r(13 + n, 20), r(20, 17)], kernels=1
)
case(
    "product_of_padded_sides",  # K is no multiple of a block, and both sides hold something beyond it
    lambda self, a, b: F.pad(a + 1.0, (2, 1), value=3.0) @ (b + 1.0),
    lambda n: [r(13, 18 + n), r(21 + n, 17)],
    kernels=1,
)
case("crelu", lambda self, x: torch.cat([torch.relu(x), torch.relu(-x)], 1), lambda n: [r(5 + n, 4, 6)], kernels=1)

case("nearest_doubled", lambda self, x: F.interpolate(x, scale_factor=2), lambda n: [r(2, 3, 4 + n, 5)], kernels=1)
case(
    "nearest_scales",
    lambda self, x: F.interpolate(x, scale_factor=(3, 2)),
    lambda n: [r(2, 3, 4 + n, 5 + n)],
    kernels=1,
)
case(
    "nearest_added",
    lambda self, x, y: F.interpolate(x, scale_factor=2) + y,
    lambda n: [r(2, 3, 4 + n, 5), r(2, 3, 8 + 2 * n, 10)],
    kernels=1,
)
case("nearest_halved", lambda self, x: F.interpolate(x, scale_factor=0.5), lambda n: [r(2, 3, 8 + n, 7)], kernels=1)
case("nearest_size", lambda self, x: F.interpolate(x, size=(16, 8)), lambda n: [r(2, 3, 5 + n, 3 + n)], kernels=1)
case(
    "nearest_unrelated",
    lambda self, x, y: F.interpolate(x, size=y.shape[2:]) + y,
    lambda n: [r(2, 3, 5 + n, 4), r(2, 3, 7 + n, 4)],
    kernels=1,
)
case(
    "nearest_known_sizes",
    lambda self, x: F.interpolate(x[:, :, None, None] * torch.arange(162.0, device=x.device).view(6, 27), size=(15, 9)),
    lambda n: [r(2 + n, 3)],
    kernels=1,
)

# In float32, 41 * (1 / 41) is less than 1: torch takes element 0 there, and so has the kernel to.
case("nearest_rounded", lambda self, x: F.interpolate(x, scale_factor=(41, 1)), lambda n: [r(1, 2, 3 + n, 2)])


def _filled(x: torch.Tensor) -> torch.Tensor:
    """Step by step, as a recurrence is written by hand; each step reads the one before."""
    filled = torch.zeros_like(x)
    for step in range(x.shape[1]):
        filled[:, step] = x[:, step] + (0.5 * filled[:, step - 1] if step else 0.0)
    return filled


case("filled_step_by_step", lambda self, x: _filled(x), lambda n: [r(3 + n, 6)])
case("filled_in_many_steps", lambda self, x: _filled(x), lambda n: [r(3 + n, 14)], steps=(0, 1))


def _heat(self: nn.Module, u: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        p = F.pad(u[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
        u = u + 0.1 * (p[:, 2:, 1:-1] + p[:, :-2, 1:-1] + p[:, 1:-1, 2:] + p[:, 1:-1, :-2] - 4 * u)
    return u


def _life(self: nn.Module, board: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        near = [torch.roll(board, (i, j), (-2, -1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
        n = sum(near[1:], near[0])
        board = ((n == 3) | ((board == 1) & (n == 2))).to(board.dtype)
    return board


def _lifted(self: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    details = []
    for _ in range(3):
        even, odd = x[..., ::2], x[..., 1::2]
        details.append(odd - 0.5 * (even + torch.roll(even, -1, -1)))
        x = even + 0.25 * (details[-1] + torch.roll(details[-1], 1, -1))
    return x, *details


#: Steps that read neighbours: what a step makes is stored, where the next ones would compute it for each of them.
case("stencil_steps", _heat, lambda n: [torch.rand(2, 6 + n, 5 + 2 * n)])
case("rolled_steps", _life, lambda n: [torch.randint(0, 2, (2, 5 + n, 6), dtype=torch.uint8)])
case("lifting_steps", _lifted, lambda n: [r(3 + n, 16)])


def _written(steps: int) -> Callable[..., torch.Tensor]:
    """Steps write to places of a tensor that may be longer than they are many."""

    def forward(self: nn.Module, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        a, b = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0])
        out = torch.zeros_like(v)
        for t in range(steps):
            e = torch.exp(k[:, t])
            out[:, t] = (a + 2 * e * v[:, t]) / (b + 2 * e)
            a, b = 0.9 * a + e * v[:, t], 0.9 * b + e
        return out

    return forward


#: Of eight steps one kernel computes all, of more the loop is a recurrence.
case("written_step_by_step", _written(8), lambda n: [r(2 + n, 8, 5), r(2 + n, 9 + n, 5)])
case("written_in_many_steps", _written(9), lambda n: [r(2 + n, 9, 5), r(2 + n, 11 + n, 5)], steps=(0, 1))


def _without_diagonal(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
    scores = x @ x.T
    scores.fill_diagonal_(float("-inf"))
    return scores.softmax(-1)


def _other_diagonal(self: nn.Module, x: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    y = x * 2.0
    y.as_strided((5,), (8,), 1).copy_(d)  # of a matrix of 6 by 7: those beside the diagonal
    return y + 1.0


case("fill_diagonal", _without_diagonal, lambda n: [r(6, 5 + n)], kernels=1)
case("as_strided_scatter", _other_diagonal, lambda n: [r(6, 7), r(5)], kernels=1, steps=(0,))
case(
    "as_strided",  # windows that overlap, by their strides
    lambda self, x: (x + 1.0).as_strided((4, 3), (2, 1), 1) * 2.0,
    lambda n: [r(3, 4)],
    kernels=1,
    steps=(0,),
)
case(
    "equal_results",  # two tensors in eager, each of which may be changed in place
    lambda self, x, w: (x + 1.0, 1.0 + x, x.softmax(-1), torch.softmax(x, 1).view(-1), x @ w, torch.mm(x, w)),
    lambda n: [r(4, 7 + n), r(7 + n, 5)],
)


def _with_sizes(x: torch.Tensor) -> dict[str, Any]:
    """Numbers computed from sizes beside a tensor, as patch embeddings return height and width."""
    batch, height, width = x.shape
    tokens = torch.relu(x).flatten(1)
    return {"x": tokens, "sizes": (height, width), "n": batch * height, "scale": width**-0.5, "mean": height / batch}


case("sizes_returned", lambda self, x: _with_sizes(x), lambda n: [r(2, 3 + n, 5 + 2 * n)])
