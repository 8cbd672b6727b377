"""What is asked of NVML, by real processes that load a stand-in for the driver's library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp import nvml


def ask(program: list[str]) -> str:
    done = subprocess.run([sys.executable, *program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def look(*own: int, name: str = "0") -> list[nvml.Use]:
    """What the program says."""
    found = json.loads(ask(["-I", "-S", nvml.__file__, name, "1", *map(str, own)]))
    return [nvml.Use(**use) for use in found]


def test_what_others_do_is_seen(gpu_driver: Path) -> None:
    assert look() == []
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        gpu_driver.write_text(f"{os.getppid()} 9\n{os.getpid()} 55\n{other.pid} 87\n{ended.pid} 99\n")
        found = look()
        assert [(use.pid, use.percent) for use in found] == [(other.pid, 87), (os.getpid(), 55)]
        program = Path(f"/proc/{other.pid}/comm").read_text().strip()
        assert nvml.said(found) == f"87 % busy by pid {other.pid} ({program}) and 1 more"
        assert nvml.said(found[:1]) == f"87 % busy by pid {other.pid} ({program})"
        assert look(os.getpid()) == []  # and all that it started
        assert look(other.pid, name="GPU-1") == [use for use in found if use.pid == os.getpid()]
        assert look(name="GPU-2") == look(name="1") == []
        other.communicate(b"\n")
    assert nvml.said([]) == ""


def test_a_machine_without_a_driver_says_nothing(
    gpu_driver: Path, gpu_driver_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every machine: what the linker finds first under the library's name is none, and it looks no further."""
    gpu_driver.write_text(f"{os.getppid()} 87\n")
    loaded = ["-c", "from kernel_lsp import nvml; print(nvml.load() is not None, nvml.gpu('0') is not None)"]
    assert ask(loaded) == "True True\n" and len(look()) == 1
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "libnvidia-ml.so.1").write_bytes(b"")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{hidden}:{gpu_driver_library}")
    assert ask(loaded) == "False False\n" and look() == []


def test_the_gpus_are_named(gpu_driver: Path) -> None:
    program = """
from kernel_lsp import nvml
for one in nvml.gpus(nvml.load()):
    print(one.text("nvmlDeviceGetName"), one.text("nvmlDeviceGetUUID"), one.memory_used(), one.memory_total())
"""
    assert ask(["-c", program]) == "Stand-in GPU GPU-1 123456789 80000000000\n"


def test_the_use_of_memory_is_watched(gpu_driver: Path) -> None:
    program = """
import asyncio
from kernel_lsp.worker import memory_use
async def main():
    async with memory_use.watched("cuda:0") as found:
        await asyncio.sleep(0.5)
    print(found["device"])
asyncio.run(main())
"""
    assert ask(["-c", program]) == "123456789\n"


def test_names_are_those_that_the_environment_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert nvml.name_of(1) == "1"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-5")
    assert [nvml.name_of(i) for i in range(3)] == ["3", "GPU-5", "2"]


def test_a_family_is_the_same_by_either_way() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in nvml.family(os.getpid())
        assert child.pid in nvml._all_children()[os.getpid()] and child.pid in nvml._children(os.getpid())
        child.communicate(b"\n")
    assert child.pid not in nvml.family(os.getpid())
