"""Which requests have a GPU's memory to themselves, and what the others keep to."""

from __future__ import annotations

import time

import pytest
import torch

from kernel_lsp.validation import memory
from kernel_lsp.worker import gpu_lock, memory_quota
from tests.worker.test_gpu_lock import parts_left

GB = 1_000_000_000


def spec(gigabytes: float, dtype: str = "float32") -> dict[str, object]:
    return {"shape": [2, int(gigabytes * GB / 2) // getattr(torch, dtype).itemsize], "dtype": dtype}


def specimen(inputs: float, outputs: float, parameters: float = 0.0) -> dict[str, object]:
    return {"inputs": [spec(inputs)], "outputs": [spec(outputs, "bfloat16")], "parameters": [spec(parameters)]}


@pytest.mark.parametrize(
    ("sizes", "took"),
    [
        ((6.44, 6.44), 54.0),
        ((8.59, 0.0), 37.1),
        ((0.13, 2.64), 18.2),
        ((0.02, 0.0, 4.3), 41.1),
        ((0.03, 0.03, 0.27), 6.8),
    ],
)
def test_the_estimate_is_near_what_problems_took(sizes: tuple[float, ...], took: float) -> None:
    """In GB, alone on an H100: GELU, a sum, a convolution, a product with large weights, and one with small."""
    assert 0.9 * took < memory_quota.needed(specimen(*sizes)) / GB < 1.6 * took


@pytest.mark.parametrize(
    ("quota", "needs", "parts", "limit"),
    [
        ((20 * GB, 80 * GB), specimen(0.5, 0.5), 4, 20 * GB),
        ((20 * GB, 80 * GB), specimen(2.0, 2.0), 6, 30 * GB),  # 29 GB
        ((20 * GB, 80 * GB), specimen(6.44, 6.44), gpu_lock.PARTS, None),
        ((10 * GB, 80 * GB), specimen(0.5, 0.5), 3, 15 * GB),  # 11 GB
        ((5 * GB, 85 * GB), specimen(0.01, 0.01), 1, 5_312_500_000),
        ((20 * GB, 80 * GB), None, gpu_lock.PARTS, None),  # not looked at, as after a restart of the worker
        (None, specimen(0.5, 0.5), 0, None),
    ],
)
def test_a_request_holds_the_parts_of_its_quota_or_as_many_as_it_needs(
    tmp_path, monkeypatch, quota, needs, parts, limit
) -> None:
    monkeypatch.setattr(memory, "_most", None)
    given = {"quota": quota, "specimen": needs, "locks": str(tmp_path)}
    assert memory_quota.limit(given) == limit
    lock = memory_quota.begin(given, torch.device("cpu"), lambda *_: None)
    try:
        assert parts_left(tmp_path) == gpu_lock.PARTS - parts and memory._most == limit
    finally:
        gpu_lock.end(lock)
    assert parts_left(tmp_path) == gpu_lock.PARTS


@pytest.mark.parametrize(
    ("there", "looks"),
    [
        ([60 * GB], 1),  # enough
        ([10 * GB, 20 * GB, 40 * GB, 58 * GB, 60 * GB], 5),  # another request's processes are ending
        ([10 * GB] * 100, None),  # no process gives memory back
    ],
)
def test_a_request_waits_while_those_before_it_give_memory_back(monkeypatch, there, looks) -> None:
    looked = []
    monkeypatch.setattr(memory, "unheld", lambda device: looked.append(1) or there[len(looked) - 1])
    is_so = memory_quota.given_back(torch.device("cuda:0"), 59 * GB)
    began = time.monotonic()
    while not is_so():
        time.sleep(0.02)
    took = time.monotonic() - began
    assert len(looked) == looks if looks else 0.5 < took < 2.0
