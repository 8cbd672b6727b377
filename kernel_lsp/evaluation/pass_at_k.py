"""Pass@k: the chance that one of k samples of a generator is correct, estimated from n samples of which c are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernel_lsp.evaluation.records import Record

STEPS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass
class PassAtK:
    """One generator's. A value is the mean over the problems that have at least k samples, as a share."""

    generator: str
    problems: int  # with any sample
    drawn: int  # samples of all problems
    correct: int
    least: int  # samples of the problem that has the fewest
    at: dict[str, float] = field(default_factory=dict)  # "5" → Pass@5
    covers: dict[str, int] = field(default_factory=dict)  # "5" → problems with at least 5 samples


def pass_at(k: int, n: int, c: int) -> float:
    """``1 - C(n-c, k) / C(n, k)`` for 1 <= k <= n samples, 0 <= c <= n of them correct; unbiased.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374), equation 1.

    Raises:
        ValueError: k or c is out of these ranges.
    """
    if not 1 <= k <= n or not 0 <= c <= n:
        raise ValueError(f"Pass@{k} of {n} samples, {c} of them correct")
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def passing(records: Sequence[Record]) -> list[PassAtK]:
    """Every generator of which some problem has several samples."""
    drawn: dict[str, list[tuple[int, int]]] = {}
    for record in records:
        for generator, counts in record.samples.items():
            if len(counts) == 2 and 0 <= counts[1] <= counts[0] and counts[0] > 0:
                drawn.setdefault(generator, []).append((counts[0], counts[1]))
    return [_of(generator, pairs) for generator, pairs in sorted(drawn.items()) if max(n for n, _ in pairs) > 1]


def _of(generator: str, pairs: list[tuple[int, int]]) -> PassAtK:
    one = PassAtK(
        generator, len(pairs), sum(n for n, _ in pairs), sum(c for _, c in pairs), least=min(n for n, _ in pairs)
    )
    for k in STEPS:
        values = [pass_at(k, n, c) for n, c in pairs if n >= k]
        if values:
            one.at[str(k)], one.covers[str(k)] = sum(values) / len(values), len(values)
    return one
