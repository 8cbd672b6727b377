"""Losses and similarities."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .registry import case, positive, r


def _first(x: torch.Tensor, number: float) -> torch.Tensor:
    x.view(-1)[0] = number
    return x


case(
    "cross_entropy",
    lambda self, x, t: F.cross_entropy(x, t),
    lambda n: [r(9 + n, 30), torch.randint(0, 30, (9 + n,))],
    kernels=2,
)
case(
    "cross_entropy_maps",
    lambda self, x, t: F.cross_entropy(x, t),
    lambda n: [r(2, 7, 4 + n, 5), torch.randint(0, 7, (2, 4 + n, 5))],
)
case(
    "cross_entropy_soft",
    lambda self, x, t: F.cross_entropy(x, t),
    lambda n: [r(9 + n, 30), torch.softmax(r(9 + n, 30), -1)],
)
case(
    "cross_entropy_each",
    lambda self, x, t: F.cross_entropy(x, t, reduction="none"),
    lambda n: [r(9 + n, 30), torch.randint(0, 30, (9 + n,))],
    kernels=1,
)
case(
    "nll",
    lambda self, x, t: F.nll_loss(F.log_softmax(x, 1), t),
    lambda n: [r(9 + n, 30), torch.randint(0, 30, (9 + n,))],
)
case("mse", lambda self, x, y: F.mse_loss(x, y), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case("l1", lambda self, x, y: F.l1_loss(x, y), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case("smooth_l1", lambda self, x, y: F.smooth_l1_loss(x, y), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case("huber", lambda self, x, y: F.huber_loss(x, y, delta=0.7), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case(
    "kl_div",
    lambda self, x, y: F.kl_div(F.log_softmax(x, -1), y, reduction="batchmean"),
    lambda n: [r(9 + n, 30), torch.softmax(r(9 + n, 30), -1)],
)
case("bce", lambda self, x, y: F.binary_cross_entropy(x, y), lambda n: [positive(9 + n, 30), positive(9 + n, 30)])
case(
    "bce_logits",
    lambda self, x, y: F.binary_cross_entropy_with_logits(x, y),
    lambda n: [r(9 + n, 30), positive(9 + n, 30)],
)
case(
    "hinge", lambda self, x, y: torch.clamp(1 - x * y, min=0).mean(), lambda n: [r(9 + n, 30), torch.sign(r(9 + n, 30))]
)
case("cosine", lambda self, x, y: F.cosine_similarity(x, y, dim=-1), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case(
    "similarity_with_one_along_the_dim",  # which counts as often as there are elements beside it
    lambda self, x, y: F.cosine_similarity(x, y, -2),
    lambda n: [r(1, 2 + n, 3), r(2, 1, 3)],
)
for _p, _reduction in ((1, "mean"), (2, "none")):
    case(
        f"multi_margin_{_reduction}",  # a NaN is not above 0
        lambda self, x, y, w, p=_p, reduction=_reduction: F.multi_margin_loss(x, y, p, 0.5, w, reduction=reduction),
        lambda n: [_first(r(6 + n, 5), torch.nan), torch.randint(1, 5, (6 + n,)), positive(5)],
    )
case(
    "cross_entropy_smoothed",  # one target is ignored; a score is as good as hidden
    lambda self, x, t: F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=3),
    lambda n: [_first(r(9 + n, 30), -1e4), torch.randint(0, 6, (9 + n,))],
    kernels=2,
)
case(
    "cosine_embedding",  # its definition changes tensors in place
    lambda self, x, y, t: (F.cosine_embedding_loss(x, y, t, 0.2), F.cosine_embedding_loss(x, y, t, reduction="none")),
    lambda n: [r(6 + n, 9), r(6 + n, 9), torch.arange(6 + n) % 2 * 2.0 - 1.0],
)
