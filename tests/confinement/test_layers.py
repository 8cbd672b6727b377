"""A layer that is missing is said in the verdict and by ``doctor``; the filter lets through what it should."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from kernel_lsp.confinement import environment, landlock, layers, paths, seccomp

LIMITS = {
    "landlock,namespace": "read and write the user's files (no Landlock, no namespace)",
    "seccomp": "(no seccomp filter)",
}


def test_missing_layers_are_limits_of_the_verdict(bare):
    verdict = bare.attack("pass")
    assert verdict["status"] == "ok", verdict["reason"]
    for words in LIMITS.values():
        assert sum(words in limit for limit in verdict["limits"]) == 1
    hello = bare.worker.call("hello")
    missing = [layer["name"] for layer in hello["confinement"] if "missing" in layer["found"] and layer["fix"]]
    assert len(missing) == len(LIMITS)


@pytest.mark.corpus
@pytest.mark.parametrize("without", LIMITS)
def test_one_missing_layer_is_a_limit_of_the_verdict(fresh, without):
    victim = fresh(without)
    verdict = victim.attack("pass")
    assert verdict["status"] == "ok", verdict["reason"]
    assert [name for name, words in LIMITS.items() if any(words in limit for limit in verdict["limits"])] == [without]


def test_with_all_layers_nothing_is_said(victim):
    found = layers.look()
    if not (found.landlock >= 3 and found.seccomp):
        pytest.skip("this system lacks a layer")
    verdict = victim.attack("pass")
    assert not any("while it was validated" in limit for limit in verdict["limits"])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (layers.Layers(0, True, "", True), ["no Landlock, no namespace"]),
        (layers.Layers(0, True, "", True, "as a user"), []),
        (layers.Layers(0, False, "", True, "as a user"), ["could start processes", "end other processes"]),
        (layers.Layers(2, True, "", True), ["Landlock 2, not 3"]),
        (layers.Layers(7, False, "", True), ["UDP"]),
        (layers.Layers(3, False, "", True), ["the network", "end other processes"]),
        (layers.Layers(7, True, "", False), ["number of processes"]),
        (layers.Layers(7, True, "/group", False), []),
        (layers.Layers(7, True, "", True), []),
    ],
)
def test_what_each_missing_layer_leaves_open(found, said):
    limits = layers.limits(found, gpu=True)
    assert len(limits) == len(said) and all(words in limit for words, limit in zip(said, limits, strict=True)), limits
    open_ = [finding for finding in layers.findings(found) if finding.fix]
    assert bool(open_) == bool(said), open_


def test_doctor_tells_of_each_layer(tmp_path):
    env = {**os.environ, "KERNEL_LSP_WITHOUT_LAYERS": "landlock,namespace"}
    program = "import sys; from kernel_lsp.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "doctor", "--json", "--interpreter", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=100)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["Landlock (files)"]["state"] == "warning"
    assert all(word in checks["Landlock (files)"]["fix"] for word in ("Linux", "namespaces"))
    assert "seccomp (sockets, processes)" in checks and "cgroup (number of processes)" in checks


def test_the_environment_keeps_what_cuda_needs_and_no_secret():
    given = {
        "PATH": "/usr/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "TRITON_PTXAS_PATH": "/x",
        "PYTORCH_CUDA_ALLOC_CONF": "y",
        "AWS_SECRET_ACCESS_KEY": "s",
        "HF_TOKEN": "t",
        "NVIDIA_API_KEY": "n",
        "TORCH_AUTH": "a",
        "SSH_AUTH_SOCK": "/z",
        "EDITOR": "vi",
    }
    assert set(environment.kept(given)) == {
        "PATH",
        "CUDA_VISIBLE_DEVICES",
        "TRITON_PTXAS_PATH",
        "PYTORCH_CUDA_ALLOC_CONF",
    }


def test_a_project_that_is_the_home_folder_is_open_for_its_python_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / ".cache" / "hub"))
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "letters").mkdir()
    (tmp_path / ".ssh").mkdir()
    for name in ("module.py", "notes.txt"):
        (tmp_path / name).touch()
    found = paths.of_project(str(tmp_path / "module.py"), str(tmp_path), str(tmp_path))
    inside = {os.path.relpath(path, tmp_path) for path in found if not path.startswith(str(tmp_path / ".cache"))}
    assert inside == {"module.py", "package"}


PROGRAM = """
import os, sys
from kernel_lsp.confinement import landlock, seccomp, syscalls
syscalls.prctl(38, 1)
version = int(sys.argv[1])
landlock.restrict([("/usr", landlock.READ), ("/lib", landlock.READ), (sys.argv[2], landlock.OWN)], version)
open(os.path.join(sys.argv[2], "mine"), "w").write("x")
os.mkdir(os.path.join(sys.argv[2], "folder"))
try:
    open(sys.argv[3], "w")
except PermissionError:
    print("closed")
"""


@pytest.mark.skipif(landlock.abi() == 0, reason="no Landlock here")
@pytest.mark.parametrize("version", range(1, min(landlock.abi(), 7) + 1))
def test_every_version_of_landlock_is_spoken(tmp_path, version):
    own = tmp_path / "own"
    own.mkdir()
    other = tmp_path / "other"
    other.write_text("kept")
    command = [sys.executable, "-c", PROGRAM, str(version), str(own), str(other)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "closed\n", done.stderr
    assert other.read_text() == "kept" and (own / "mine").read_text() == "x"


@pytest.mark.skipif(not seccomp.available(), reason="no seccomp here")
@pytest.mark.parametrize("processes", [True, False])
def test_a_confined_process_may_start_threads_and_programs_only_where_asked(processes):
    text = f"""
import os, subprocess, threading
from kernel_lsp.confinement import seccomp, syscalls
syscalls.prctl(38, 1)
seccomp.install(seccomp.program({processes}, False, True, None))
thread = threading.Thread(target=print, args=["thread"])
thread.start(); thread.join()
os.abort() if os.getpid() < 0 else None
try:
    print(subprocess.run(["/bin/true"]).returncode)
except PermissionError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout.split() == ["thread", "0" if processes else "refused"], done.stderr
