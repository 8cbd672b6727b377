"""Whether one of two kernels timed in turn is slower: never of equal ones, always of one that is 8 % slower."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.validation.ratios import CONFIDENCE, ratio

THRESHOLD = 1.05


def rounds(slower: float, seed: int, count: int = 60) -> tuple[list[float], list[float]]:
    """Times of two kernels on a device whose clock drifts by a third, with spread of their own and now and then a hiccup."""
    random_ = random.Random(seed)
    now, before = [], []
    for i in range(count):
        drift = 100.0 * (1 + i / count / 3) * random_.choice([1, 1, 1, 1.2])
        now.append(drift * slower * random_.gauss(1, 0.02) * random_.choice([*[1] * 19, 3]))
        before.append(drift * random_.gauss(1, 0.02) * random_.choice([*[1] * 19, 3]))
    return now, before


@pytest.mark.parametrize("seed", range(20))
def test_equal_kernels_are_not_told_apart(seed):
    same = ratio(*rounds(1.0, seed))
    assert same
    assert 1 / THRESHOLD < same.low <= same.value <= same.high < THRESHOLD


def test_a_slow_down_of_8_percent_lies_beyond_the_threshold_in_nearly_every_run():
    found = [ratio(*rounds(1.08, seed, 100)) for seed in range(200)]
    assert statistics.mean(one is not None and one.low > THRESHOLD for one in found) > 0.95


def test_the_interval_holds_the_true_ratio_as_often_as_it_says():
    """Of the sign test's interval that is known exactly: at least 99 % of the runs, whatever the distribution."""
    held = 0
    for seed in range(2000):
        random_ = random.Random(seed)
        found = ratio(
            [random_.expovariate(1) + 0.1 for _ in range(21)], [random_.expovariate(1) + 0.1 for _ in range(21)]
        )
        assert found
        held += found.low <= 1.0 <= found.high
    assert held / 2000 > CONFIDENCE - 0.005


@pytest.mark.parametrize("count", range(12))
def test_a_few_rounds_are_too_few(count):
    assert (ratio([1.0] * count, [1.0] * count) is None) == (count < 8)


@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0.1, 1e6)), min_size=8, max_size=120))
def test_the_other_way_round_it_is_the_reciprocal(pairs):
    now, before = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = ratio(now, before), ratio(before, now)
    assert there and back and there.rounds == len(pairs)
    assert there.low == pytest.approx(1 / back.high) and there.high == pytest.approx(1 / back.low)
    assert there.low <= there.value <= there.high
