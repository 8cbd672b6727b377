"""The worker process as the server meets it: over its pipe, with real children."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from kernel_lsp.jobs.client import Worker
from tests.worker.worker_client import MAIN, Client, WorkerError

NOISY = """
import sys, os, torch
print("hello from the module"); os.write(1, b"raw bytes on descriptor 1\\n")
class Noisy(torch.nn.Module):
    def forward(self, x):
        print("forward prints, too"); sys.stdout.flush()
        return x + 1
def get_inputs():
    print(sys.stdin.read())
    return [torch.randn(4, 8)]
"""

SLEEPY = """
import time, torch
class Sleepy(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    time.sleep(600)
"""


def children_of(client: Client) -> list[psutil.Process]:
    return psutil.Process(client.process.pid).children(recursive=True)


def wait_until(condition, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture(scope="module")
def worker(own_worker: Client) -> Client:
    """Started as a user's is, since it is the subject here."""
    return own_worker


def test_hello_says_what_the_interpreter_has(worker):
    found = worker.call("hello")
    assert found["interpreter"] == sys.executable
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    import torch

    assert found["torch"] == torch.__version__
    assert found["problems"] == []
    assert found["devices"][-1]["kind"] == "interpreter"


def test_the_manager_imports_neither_torch_nor_triton(worker):
    worker.call("hello")
    maps = Path(f"/proc/{worker.process.pid}/maps").read_text()
    assert "libtorch" not in maps and "libtriton" not in maps


def test_prints_of_the_users_module_do_not_reach_the_protocol(worker, write):
    specimen = worker.call("introspect", path=write(NOISY), class_name="Noisy")
    assert specimen["ops"] == {"aten.add": 1}
    assert "raw bytes on descriptor 1" in worker.stderr


def test_an_unknown_method_and_a_broken_line_are_answered_or_survived(worker):
    worker.process.stdin.write(b"this is not JSON\n")
    with pytest.raises(WorkerError, match="no method 'frobnicate'"):
        worker.call("frobnicate")


def test_a_wrapper_program_may_stand_before_the_interpreter(tmp_path):
    log = tmp_path / "log"
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\necho "$@" > {log}\ncd /\nexec env -i PATH=/usr/bin:/bin "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IEXEC)
    client = Client([str(wrapper), sys.executable])
    try:
        assert client.call("hello")["problems"] == []
        assert log.read_text().split() == [sys.executable, str(MAIN)]
    finally:
        client.close()


def test_cancel_kills_within_a_second(worker, write):
    worker.call("introspect", path=write(NOISY), class_name="Noisy")  # the zygotes are warm
    before = {p.pid for p in children_of(worker)}
    ident = worker.send("introspect", path=write(SLEEPY), class_name="Sleepy")
    assert wait_until(lambda: {p.pid for p in children_of(worker)} - before, 5)
    began = time.monotonic()
    worker.write({"method": "cancel", "params": {"id": ident}})
    with pytest.raises(WorkerError) as caught:
        worker.wait(ident)
    assert caught.value.code == "Cancelled"
    assert time.monotonic() - began < 1
    assert wait_until(lambda: {p.pid for p in children_of(worker)} == before, 1)


def test_a_deadline_ends_the_child_and_names_the_stage(worker, write):
    with pytest.raises(WorkerError, match="making example inputs") as caught:
        worker.call("introspect", path=write(SLEEPY), class_name="Sleepy", seconds=1)
    assert caught.value.code == "WorkerTimedOut"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("os._exit(3)", "exit status 3"),
        ("ctypes.string_at(0)", "killed by SIGSEGV"),
    ],
)
def test_the_death_of_a_child_is_named_and_the_worker_goes_on(worker, write, how, said):
    text = f"import os, sys, ctypes, torch\nprint('last words', file=sys.stderr, flush=True)\n{how}\n"
    path = write(text + "class Gone(torch.nn.Module):\n    pass\n")
    with pytest.raises(WorkerError, match=said) as caught:
        worker.call("introspect", path=path, class_name="Gone")
    assert caught.value.code == "WorkerDied"
    assert "last words" in caught.value.message
    assert worker.call("introspect", path=write(NOISY, "after.py"), class_name="Noisy")["ops"]


@pytest.mark.parametrize("how", ["close standard input", pytest.param("kill the worker", marks=pytest.mark.slow)])
def test_nothing_outlives_the_worker(write, how):
    client = Client()
    try:
        path = write(SLEEPY)
        ident = client.send("introspect", path=path, class_name="Sleepy")
        while client.next()["data"]["message"] != "making example inputs":
            pass
        family = children_of(client)
        assert len(family) >= 3, "two zygotes and the child that sleeps"
        if how == "kill the worker":
            os.kill(client.process.pid, signal.SIGKILL)
        else:
            client.process.stdin.close()
        _, alive = psutil.wait_procs(family, timeout=3)
        assert not [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
        client.process.wait(3)
        assert ident
    finally:
        client.close()


def test_an_answer_that_is_not_read_to_its_end(tmp_path):
    """The reader closes the pipe while the worker is in the middle of writing to it: the worker ends as a whole."""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, str(MAIN)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as one:
        one.stdin.write(json.dumps({"id": 1, "method": "x" * (1 << 20)}).encode() + b"\n")  # the answer repeats it
        one.stdin.flush()
        assert os.read(one.stdout.fileno(), 100).startswith(b'{"id": 1')
        family = psutil.Process(one.pid).children(recursive=True)
        assert family and list(tmp_path.glob("kernel-lsp-*"))
        one.stdout.close()
        assert one.wait(5) == 0
    _, alive = psutil.wait_procs(family, timeout=5)
    assert not [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    assert wait_until(lambda: not list(tmp_path.glob("kernel-lsp-*")), 5)


def test_an_interpreter_without_torch_says_what_to_install(write):
    # -I -S: the standard library alone, whatever is installed here.
    client = Client([sys.executable, "-I", "-S"])
    try:
        problems = client.call("hello")["problems"]
        assert [p["code"] for p in problems] == ["PackageMissing"] * 3
        assert f"{sys.executable} -m pip install 'torch>=2.11,<2.14'" in problems[0]["message"]
        with pytest.raises(WorkerError) as caught:
            client.call("introspect", path=write(NOISY), class_name="Noisy")
        assert caught.value.code == "PackageMissing"
    finally:
        client.close()


def test_a_version_that_is_too_old_says_what_to_upgrade(tmp_path):
    for name, version in (("torch", "2.4.1"), ("triton", "3.0.0"), ("numpy", "1.21.0")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"__version__ = '{version}'\nraise ImportError('not a real one')")
    starter = (
        f"import sys, runpy; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_path(sys.argv[1], run_name='__main__')"
    )
    client = Client([sys.executable, "-I", "-S", "-c", starter])
    try:
        problems = client.call("hello")["problems"]
        assert [p["code"] for p in problems] == ["PackageTooOld"] * 3
        assert "has torch 2.4.1; kernel-lsp needs 2.11 or newer" in problems[0]["message"]
    finally:
        client.close()


def requirements(*names: str) -> set[str]:
    """The distributions that ``names`` need, themselves included, by their metadata."""
    import importlib.metadata as metadata
    import re

    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found.add(name)
        todo += [re.match(r"[\w.-]+", need).group(0) for need in needs if "extra ==" not in need]
    return found


@pytest.mark.slow
def test_torch_triton_and_numpy_are_all_it_needs(tmp_path, write):
    """The whole path, in an interpreter that sees exactly these distributions and what they require themselves."""
    import importlib.metadata as metadata

    site = tmp_path / "site"
    site.mkdir()
    for name in requirements("torch", "triton", "numpy"):
        for file in metadata.files(name) or []:
            top = file.parts[0]
            source = Path(file.locate()).parents[len(file.parts) - 1] / top
            if top != ".." and not (site / top).exists() and top != "__pycache__":
                (site / top).symlink_to(source)
    assert not (site / "pygls").exists() and not (site / "lsprotocol").exists() and (site / "torch").exists()
    starter = f"import sys, runpy; sys.path.insert(0, {str(site)!r}); runpy.run_path(sys.argv[1], run_name='__main__')"
    client = Client([sys.executable, "-I", "-S", "-c", starter])
    text = (
        "import torch\nclass Scale(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"
        "def get_inputs():\n    return [torch.randn(64, 128)]\n"
    )
    try:
        assert client.call("hello")["problems"] == []
        found = client.call("synthesize", path=write(text, "scale.py"), class_name="Scale")
        source = found["candidates"][0]["source"]
        validated = client.call(
            "validate", path=write(text, "scale.py"), class_name="Scale", source=source, measure="none"
        )
        assert validated["verdict"]["status"] == "ok"
        assert validated["verdict"]["kernels"][0]["registers"] > 0
    finally:
        client.close()


def test_the_worker_runs_without_anything_of_the_servers():
    """Its source imports only the standard library, torch, triton, numpy and what torch brings (checked by import-linter too)."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import runpy, sys, json; m = runpy.run_path({str(MAIN.parents[1] / 'startup.py')!r});"
            "m['register_package'](); import kernel_lsp.worker.manager;"
            "print(json.dumps([n for n in ('torch', 'triton', 'numpy', 'pygls', 'lsprotocol') if n in sys.modules]))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []


async def test_it_gives_way_to_the_editor():
    worker = Worker([sys.executable], give_way=True)  # as the server starts it
    try:
        await worker.start()
        assert psutil.Process(worker.pid).nice() == min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
        group = Path(f"/proc/{worker.pid}/autogroup")
        assert not group.exists() or group.read_text().split()[-1] == "10"
    finally:
        await worker.close()
