"""How much slower one of two kernels is that were timed in turn: the median of the rounds' ratios and how sure it is."""

from __future__ import annotations

import math
import statistics

from kernel_lsp import schema

#: how sure the interval is
CONFIDENCE = 0.99


def ratio(now: list[float], before: list[float]) -> schema.Ratio | None:
    """``now`` over ``before``, times of the same rounds: the median of their ratios with its confidence interval.

    Both times of a round are taken right after one another, so that what slows the whole device down for a moment is in
    both. The interval is that of the sign test, between two order statistics of the ratios (Conover, Practical
    Nonparametric Statistics, section 3.2): it assumes nothing of how times are distributed. None where the rounds are
    too few for any interval to be so sure.

    Args:
        now, before: microseconds, greater than 0, one each a round.
    """
    ratios = sorted(a / b for a, b in zip(now, before, strict=True))
    rank = _rank(len(ratios))
    if rank is None:
        return None
    return schema.Ratio(statistics.median(ratios), ratios[rank], ratios[-1 - rank], len(ratios))


def _rank(count: int) -> int | None:
    """How many of ``count`` values lie outside the interval on either side; None where even all do not do.

    The median lies below the value of rank k (from 0) with the probability that at most k of ``count`` fair coins show
    heads.
    """
    outside, below = None, 0.0
    for k in range(count // 2):
        below += math.comb(count, k) / 2**count
        if 2 * below > 1 - CONFIDENCE:
            break
        outside = k
    return outside
