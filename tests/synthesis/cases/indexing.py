"""Elements taken by index."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .registry import case, r

case("embedding", lambda self, i, w: F.embedding(i, w) * 2.0, lambda n: [torch.randint(0, 11, (3, 5 + n)), r(11, 24)])
case("gathered", lambda self, x, i: x.gather(1, i), lambda n: [r(4 + n, 24), torch.randint(0, 24, (4 + n, 24))])
