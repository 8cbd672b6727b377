"""Keys that count for nothing because of where they stand."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Pointwise
from kernel_lsp.synthesis.passes.masked_keys import Assumed, Places, hidden_beyond
from kernel_lsp.synthesis.schedule.target import target
from kernel_lsp.synthesis.stages import lowered, planned

Mask = Callable[[torch.Tensor], torch.Tensor]


def hidden(mask: Mask, after: Callable[[torch.Tensor], torch.Tensor]) -> tuple[Assumed | None, bool]:
    """What holds of the keys that count, and whether the rest is computed without a comparison."""

    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return after(mask(q @ k.transpose(-2, -1))) @ v

    tensors = torch.randn(3, 20, 16), torch.randn(3, 24, 16), torch.randn(3, 24, 16)
    found = planned(lowered(capture(Attention(), tensors), on=target("H100"), chained=True))
    (kernel,) = (kernel for kernel in found.kernels if kernel.chain is not None)
    chain = kernel.chain
    assert chain is not None
    places = Places(kernel.domain, kernel.domain.kept[1], chain.key, {chain.first, *kernel.leaves})
    nothing = 0.0 if chain.highest is None else -math.inf
    at = kernel.placed[chain.score]
    known = hidden_beyond(chain.score, at, places, nothing)
    if known is None:
        return None, False
    plain = topological([known.simplified(chain.score, at)])
    return known, not any(isinstance(v.op, Pointwise) and v.op.function in ("where", "gt", "le") for v in plain)


def causal(s: torch.Tensor, diagonal: int = 0) -> torch.Tensor:
    return torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril(diagonal)


def softmax(s: torch.Tensor) -> torch.Tensor:
    return s.softmax(-1)


def of_indices(s: torch.Tensor) -> torch.Tensor:
    i, j = torch.arange(s.shape[-2], device=s.device), torch.arange(s.shape[-1], device=s.device)
    return torch.where(i[:, None] >= j[None, :], s, -math.inf)


MASKS: dict[str, tuple[Mask, int]] = {
    "tril": (lambda s: s.masked_fill(~causal(s), -math.inf), 0),
    "tril of numbers": (lambda s: s.masked_fill(torch.tril(torch.ones_like(s)) == 0, -math.inf), 0),
    "one more": (lambda s: s.masked_fill(~causal(s, 1), -math.inf), 1),
    "not itself": (lambda s: s.masked_fill(~causal(s, -1), -math.inf), -1),
    "a sum": (lambda s: s + torch.triu(torch.full(s.shape[-2:], -math.inf, device=s.device), 1), 0),
    "indices": (of_indices, 0),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_causal_mask_is_seen_however_it_is_written(name: str) -> None:
    mask, beyond = MASKS[name]
    known, plain = hidden(mask, softmax)
    assert known is not None and known.beyond == beyond
    assert plain, "blocks of keys that all rows see need no mask"


def test_what_a_relu_makes_of_hidden_keys_counts_for_nothing() -> None:
    known, _ = hidden(MASKS["tril"][0], torch.relu)
    assert known is not None and known.beyond == 0


def test_keys_with_a_finite_score_count() -> None:
    assert hidden(lambda s: s.masked_fill(~causal(s), -1e4), softmax) == (None, False)
    assert hidden(MASKS["tril"][0], torch.sigmoid)[0] is not None, "1 / (1 + exp(inf)) is 0"
    assert hidden(lambda s: s.masked_fill(~causal(s), 0.0), torch.sigmoid)[0] is None
