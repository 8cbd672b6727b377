import os
import stat
import time

import pytest

from kernel_lsp.hub import memory
from kernel_lsp.hub.memory import Gpu, memory_here, parse_gpus

MIB = 1 << 20
LINES = """\
0, GPU-aaaa1111, NVIDIA H100 80GB HBM3, 81559, 81004
1, GPU-bbbb2222, NVIDIA GeForce RTX 4090, 24564, 23000
2, GPU-cccc3333, NVIDIA GB10, [N/A], [N/A]
"""
H100 = Gpu("NVIDIA H100 80GB HBM3", 81559 * MIB, 81004 * MIB)
RTX = Gpu("NVIDIA GeForce RTX 4090", 24564 * MIB, 23000 * MIB)


@pytest.mark.parametrize(("visible", "expected"), [
    (None, [H100, RTX]),
    ("1", [RTX]),
    ("1,0", [H100, RTX]),
    ("GPU-aaaa", [H100]),
    ("7", []),
])  # fmt: skip
def test_gpus_that_are_visible(visible, expected):
    assert parse_gpus(LINES, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == expected


def test_words_instead_of_gpus_are_no_gpus():
    assert parse_gpus("No devices were found\n", {}) == []
    assert parse_gpus("", {}) == []


def test_this_machine_has_memory():
    assert (1 << 28) < memory_here().ram < (1 << 50)


@pytest.mark.gpu
def test_the_gpu_here_is_seen():
    gpu = memory_here().largest_gpu
    assert gpu is not None and gpu.name and gpu.total > 1 << 30 and 0 < gpu.free <= gpu.total


def test_a_container_has_what_it_may_use(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:       32000000 kB\nMemFree: 1 kB\n")
    assert memory._ram(tmp_path) == 32_000_000 << 10
    limit = tmp_path / "sys" / "fs" / "cgroup" / "memory.max"
    limit.parent.mkdir(parents=True)
    limit.write_text("max\n")
    assert memory._ram(tmp_path) == 32_000_000 << 10
    limit.write_text(f"{4 << 30}\n")
    assert memory._ram(tmp_path) == 4 << 30


def test_a_tool_that_hangs_fails_or_is_not_there_holds_nothing_up(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert memory._gpus() == []
    tool = tmp_path / "nvidia-smi"
    for script, longest in (("sleep 60", 1.5), ("echo no driver; exit 9", 5), ("exec /no/such/tool", 5)):
        tool.write_text(f"#!/bin/sh\nPATH={os.defpath}\n{script}\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        began = time.monotonic()
        assert memory._gpus(seconds=0.5 if "sleep" in script else 5) == []
        assert time.monotonic() - began < longest
    tool.write_text("not a program")
    assert memory._gpus() == []
