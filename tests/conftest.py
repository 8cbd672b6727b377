"""Tests marked ``gpu`` are skipped, with the reason, where there is no CUDA GPU; no test sees this machine's models."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from kernel_lsp.jobs import client
from tests import nursery
from tests.worker.worker_client import Client

GPU = Path("/dev/nvidiactl").exists()
#: What takes long, which make test leaves to make test-slow; tools/long_tests.py makes the list of a run's durations.
LONG = frozenset(Path(__file__).with_name("long.txt").read_text().splitlines())
#: What takes long and differs little from another test, which make test-cases alone runs.
ALIKE = frozenset(Path(__file__).with_name("alike.txt").read_text().splitlines())
#: Each test file runs in one process of pytest-xdist, since most have something to start, or to make, that takes long; so do these together.
TOGETHER = {
    "confinement/": "confinement",
    "validation/adversarial/": "validation/adversarial",
    "synthesis/test_cases.py": "synthesis/texts",
    "synthesis/test_golden.py": "synthesis/texts",
}


# The machine is shared: how long one example takes says nothing of what is tested.
hypothesis.settings.register_profile("kernel-lsp", deadline=None)
hypothesis.settings.load_profile("kernel-lsp")


def pytest_configure() -> None:
    nursery.begin()  # here: what pytest-xdist starts afterwards shares it


def pytest_unconfigure() -> None:
    nursery.end()


@pytest.fixture(scope="session", autouse=True)
def workers_from_the_nursery() -> Iterator[None]:
    """The workers that this process starts through ``kernel_lsp.jobs``."""
    before, client.WORKER_MAIN = client.WORKER_MAIN, nursery.WORKER_MAIN
    yield
    client.WORKER_MAIN = before


@pytest.fixture(scope="module")
def own_worker() -> Iterator[Client]:
    """Started by itself: for tests of its processes and of their memory, which those of ``worker`` share with others."""
    client = Client()
    yield client
    client.close()


@pytest.fixture(scope="session", autouse=True)
def no_models_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is in the user's own cache of models, or in the environment, must not decide a test."""
    names = ("HF_HUB_CACHE", "OPENAI_API_KEY", "KERNEL_LSP_STORE", "COLUMNS")
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ["HF_HUB_CACHE"] = str(tmp_path_factory.mktemp("hub"))
    os.environ["KERNEL_LSP_STORE"] = ""  # none: a test that wants one names its own
    yield
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@pytest.fixture(scope="session", autouse=True)
def bugs_of_lowerings_raise() -> Iterator[None]:
    """Where a user's module falls back to torch and a message asks for a report, a test fails."""
    before = os.environ.get("KERNEL_LSP_RAISE_FAULTS")
    os.environ["KERNEL_LSP_RAISE_FAULTS"] = "1"
    yield
    os.environ.pop("KERNEL_LSP_RAISE_FAULTS")
    if before is not None:
        os.environ["KERNEL_LSP_RAISE_FAULTS"] = before


@pytest.fixture(scope="session")
def gpu_driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a stand-in for the driver's NVML."""
    compiler = shutil.which("cc") or pytest.skip("no C compiler for a stand-in for NVML")
    # One for the processes of pytest-xdist: workers that find it under another path are warmed up anew (tests/nursery/warm.py).
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "nvml"
    folder.mkdir(exist_ok=True)
    if not (library := folder / "libnvidia-ml.so.1").exists():
        mine = folder / f".{os.getpid()}"
        source = Path(__file__).with_name("nvml_stand_in.c")
        subprocess.run([str(compiler), "-shared", "-fPIC", "-o", str(mine), str(source)], check=True, timeout=60)
        mine.rename(library)  # whole at once: another process may look
    return folder


@pytest.fixture
def gpu_driver(gpu_driver_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says which processes use the GPU of processes that are started now: a line "pid percent" for each."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(gpu_driver_library))
    monkeypatch.setenv("NVML_STAND_IN", str(tmp_path / "processes"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path / "processes"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(here).as_posix()
        group = next((group for start, group in TOGETHER.items() if place.startswith(start)), place)
        item.add_marker(pytest.mark.xdist_group(group))
        name = item.nodeid.removeprefix("tests/")
        if name in LONG:
            item.add_marker(pytest.mark.slow)
        if name in ALIKE:
            item.add_marker(pytest.mark.cases)
    if GPU:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no CUDA GPU here"))
