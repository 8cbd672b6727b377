"""What a process may count on of a GPU's memory, with a driver that says what a test has it say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernel_lsp.validation import memory, timing

ON_THE_GPU: Any = [SimpleNamespace(device=torch.device("cuda", 0))]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A GPU whose figures can be set, in bytes: ``left`` by all processes, and ``reserved`` and ``allocated`` by this one."""
    says = SimpleNamespace(left=100_000, reserved=0, allocated=0)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (says.left, 139_000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda *_: says.reserved)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda *_: says.allocated)
    monkeypatch.setattr(memory, "_most", None)
    return says


def test_within_a_quota_it_does_not_matter_what_others_leave(gpu: SimpleNamespace) -> None:
    gpu.reserved, gpu.allocated = 3_000, 1_000
    assert memory.free(ON_THE_GPU) == 102_000
    memory.keep_to(17_000)
    found = set()
    for gpu.left in (100_000, 40_000, 15_000):
        found.add(memory.free(ON_THE_GPU))
    assert found == {16_000}
    gpu.left = 5_000  # less than the quota is there
    assert memory.free(ON_THE_GPU) == 7_000
    gpu.reserved = gpu.allocated = 20_000
    assert memory.free(ON_THE_GPU) == 0
    memory.keep_to(None)
    assert memory.free(ON_THE_GPU) == 5_000


def test_what_could_be_had_without_other_lanes(gpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SimpleNamespace(total_memory=80_000_000_000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: whole)
    assert not memory.limited() and memory.free_alone(ON_THE_GPU) == 0
    memory.keep_to(10_000_000_000)
    gpu.allocated = 3_000_000_000
    assert memory.limited() and memory.free_alone(ON_THE_GPU) == 72_000_000_000


def test_inputs_are_rotated_by_the_quota_and_not_by_what_others_leave(gpu: SimpleNamespace) -> None:
    x = torch.arange(250.0)  # 1000 bytes
    assert len(timing.rotated((x,), {}, 8)) == 8
    memory.keep_to(12_000)
    for gpu.left in (100_000, 12_500):
        assert len(timing.rotated((x,), {}, 8)) == 3


def test_the_hosts_memory_is_not_limited_by_it(gpu: SimpleNamespace) -> None:
    memory.keep_to(1)
    assert memory.free([torch.empty(0)]) > 1 << 20
