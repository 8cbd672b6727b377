"""Which of KernelBench's problems a script runs: named ones, or a sample by a seed."""

from __future__ import annotations

import random

from kernel_lsp.suites.found import Found


def chosen(problems: list[Found], named: str, count: int, seed: int) -> list[Found]:
    """Those that are ``named``, else ``count`` of levels 1 to 3, of each in proportion; level 3 first, which takes longest."""
    if named:
        wanted = [tuple(map(int, one.split(":"))) for one in named.split(",")]
        found = {(one.problem.level, one.problem.number): one for one in problems}
        return [found[one] for one in wanted if one in found]
    by_level = {level: [one for one in problems if one.problem.level == level] for level in (3, 1, 2)}
    every = sum(map(len, by_level.values()))
    drawn, result = random.Random(seed), []
    shares = {level: min(len(of), round(count * len(of) / max(1, every))) for level, of in by_level.items()}
    for level, of in by_level.items():
        result += sorted(drawn.sample(of, shares[level]), key=lambda one: one.problem.number or 0)
    return result
