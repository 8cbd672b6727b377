"""What works without huggingface_hub, and what is said where it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDE = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *package: None if name == "huggingface_hub" else find_spec(name, *package)
"""


@pytest.fixture
def models(tmp_path):
    """Runs ``kernel-lsp models`` where huggingface_hub is not to be found."""
    hidden = tmp_path / "site"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(HIDE)
    cache = tmp_path / "home" / "hub" / "models--maker--Tiny" / "snapshots" / ("0" * 40)
    cache.mkdir(parents=True)
    (cache / "tiny-Q8_0.gguf").write_bytes(b"GGUF" + bytes(1000))

    def run(*arguments: str) -> tuple[int, dict]:
        environment = os.environ | {"PYTHONPATH": str(hidden), "HF_HOME": str(tmp_path / "home")}
        environment.pop("HF_HUB_CACHE", None)
        command = [sys.executable, "-m", "kernel_lsp.cli", "models", *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert "Traceback" not in done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def test_pull_and_remove_give_the_exact_command(models):
    for arguments in (["pull", "kernelllm"], ["remove", "maker/Tiny", "--yes"]):
        status, document = models(*arguments)
        assert status == 2 and document["error"]["code"] == "HubPackageMissing"
        assert sys.executable in document["error"]["message"]
        assert "'huggingface_hub>=1'" in document["error"]["message"]


def test_list_needs_nothing(models):
    status, document = models("list")
    assert status == 0
    (row,) = [row for row in document["models"] if row["repository"] == "maker/Tiny"]
    assert (row["name"], row["state"], row["generator"]) == ("maker/Tiny:Q8_0", "complete", "llama-cpp")
    assert Path(row["path"]).name == "tiny-Q8_0.gguf"


def test_offline_goes_before_the_missing_package(models):
    status, document = models("pull", "kernelllm", "--offline")
    assert status == 2 and document["error"]["code"] == "HubOffline"
    status, document = models("pull", "maker/Tiny:q8_0", "--offline")
    assert status == 0 and document["path"].endswith("tiny-Q8_0.gguf")


def test_looking_at_the_cache_imports_nothing_else():
    program = (
        "import sys; from kernel_lsp.hub import cache; import kernel_lsp.commands.models; cache.find('kernelllm'); "
        "print([m for m in ('huggingface_hub', 'rich', 'torch', 'numpy', 'pygls', 'filelock') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
