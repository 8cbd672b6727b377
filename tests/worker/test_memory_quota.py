"""Which requests have a GPU's memory to themselves, and what the others keep to."""

from __future__ import annotations

import pytest
import torch

from kernel_lsp.validation import memory
from kernel_lsp.worker import gpu_lock, memory_quota
from tests.worker.test_gpu_lock import free

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


def test_what_needs_more_than_the_quota_is_not_limited() -> None:
    small, large = specimen(0.5, 0.5), specimen(6.44, 6.44)
    assert memory_quota.limit({"quota": 17 * GB, "specimen": small}) == 17 * GB
    assert memory_quota.limit({"quota": 17 * GB, "specimen": large}) is None
    assert memory_quota.limit({"quota": None, "specimen": small}) is None


@pytest.mark.parametrize("given", [{}, {"specimen": None}])
def test_a_class_that_was_not_looked_at_has_the_whole_memory(held, given) -> None:
    """As after a restart of the worker."""
    assert held(given | {"quota": 17 * GB}) == ("not at all", None)


@pytest.fixture
def held(tmp_path, monkeypatch):
    """``held(given)``: how others could hold the memory while a request has begun, and what that counts on."""
    monkeypatch.setattr(memory, "_most", None)

    def begun(given: dict[str, object]) -> tuple[str, int | None]:
        lock = memory_quota.begin(given | {"locks": str(tmp_path)}, torch.device("cpu"), lambda *_: None)
        try:
            could = next((how for how in ("EX", "SH") if free(tmp_path, f"LOCK_{how}", "memory")), "not at all")
            return could, memory._most
        finally:
            gpu_lock.end(lock)

    return begun


def test_a_request_holds_its_quota_or_the_whole_memory_and_without_a_quota_nothing(held) -> None:
    small, large = specimen(0.5, 0.5), specimen(6.44, 6.44)
    assert held({"quota": 17 * GB, "specimen": small}) == ("SH", 17 * GB)
    assert held({"quota": 17 * GB, "specimen": large}) == ("not at all", None)
    assert held({"quota": None, "specimen": large}) == ("EX", None)
