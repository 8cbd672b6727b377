"""What a candidate sees in an unmarked process: its user's program, its own file, and nothing of a validation."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.confinement.waiting import wait_until
from tests.validation.adversarial.material import softmax
from tests.validation.modules import SOFTMAX
from tests.worker.worker_client import Client

#: in the user's module: what a kernel's own text may say is screened
LOOK = """
def look(frame):
    import gc, hashlib, inspect, json, os, sys, threading
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
    kernel, main, stack = frame.f_globals, sys.modules["__main__"], []
    text = inspect.getsource(sys.modules[kernel["__name__"]])
    while frame is not None:
        stack.append(frame.f_code.co_filename)
        frame = frame.f_back
    named = [getattr(one, "__module__", None) for one in (*gc.get_objects(), *Exception.__subclasses__())]
    found = {
        "file": kernel["__file__"],
        "name": kernel["__name__"],
        "text": hashlib.sha256(text.strip().encode()).hexdigest(),
        "stack": stack,
        "frames": len(sys._current_frames()),
        "modules": [name for name in sys.modules if "kernel" in name or name == "torch._dynamo"],
        "variables": dict(os.environ),
        "modes": len(_get_current_function_mode_stack()) + len(_get_current_dispatch_mode_stack()),
        "main": main.__file__,
        "globals": [name for name, value in vars(main).items() if "kernel_lsp" in str(value)],
        "command": open("/proc/self/cmdline").read().rstrip(chr(0)).split(chr(0)),
        "arguments": [sys.argv, sys.orig_argv[1:]],
        "folder": os.getcwd(),
        "reachable": sorted({name for name in named if isinstance(name, str) and name.startswith("kernel_lsp.")}),
        "thread": threading.current_thread() is threading.main_thread(),
        "threads": torch.get_num_threads(),
        "importers": [path for path in sys.path_importer_cache if "kernel_lsp" in path],
        "standard": sys.stdout is sys.stderr,
    }
    if main.__file__.endswith("/main.py"):
        print("LOOK " + json.dumps(found), file=sys.stderr, flush=True)
"""
FIRST = "import sys, module\nmodule.look(sys._getframe())"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the candidate saw in its last process, a plain one; ``source`` and ``project`` are the test's own."""
    project = tmp_path_factory.mktemp("project")
    (project / "module.py").write_text("import torch\nfrom torch import nn\n" + SOFTMAX + LOOK)
    source = "import torch, triton, triton.language as tl\nfrom module import Softmax\n" + softmax(first=FIRST)
    client = Client(env={**os.environ, "TRITON_CACHE_DIR": "/nowhere", "MY_TOKEN": "x"})
    try:
        given = {"path": str(project / "module.py"), "class_name": "Softmax", "source": source}
        answer = client.call("validate", **given, device="interpreter", seconds=60, measure="none")
        assert answer["verdict"]["status"] == "ok", answer["verdict"]["reason"]

        def told() -> list[dict[str, Any]]:
            lines = [line[5:] for line in client.stderr.splitlines() if line.startswith("LOOK ")]
            return [json.loads(line) for line in lines]

        assert wait_until(lambda: bool(told()), 5)
        return told()[-1] | {"source": source, "project": project}
    finally:
        client.close()


@pytest.mark.slow
def test_its_file_is_the_one_that_it_will_be(seen: dict[str, Any]) -> None:
    assert seen["file"] == str(seen["project"] / "kernels" / "softmax_triton.py")
    assert seen["name"] == "kernels.softmax_triton" and "kernels" in seen["modules"]
    assert seen["text"] == hashlib.sha256(seen["source"].strip().encode()).hexdigest()
    assert not (seen["project"] / "kernels").exists()  # nothing was written there


def test_nothing_of_ours_is_on_its_stack_or_imported(seen: dict[str, Any]) -> None:
    assert seen["stack"][-1] == seen["main"] and seen["frames"] == 1 and seen["thread"]
    assert not any("kernel_lsp/" in file for file in seen["stack"])
    assert not [name for name in seen["modules"] if name == "kernel_lsp" or name.startswith("kernel_lsp.")]
    assert "torch._dynamo" not in seen["modules"]
    assert (seen["reachable"], seen["globals"], seen["importers"]) == ([], [], [])


def test_it_is_a_program_s_main(seen: dict[str, Any]) -> None:
    main = seen["main"]
    usual = subprocess.run([sys.executable, "-c", "import torch; print(torch.get_num_threads())"], capture_output=True)
    threads = int(usual.stdout)
    assert seen["arguments"] == [[main], [main]] and seen["command"][1:] == [main]
    assert seen["folder"] == str(seen["project"])
    assert "kernel-lsp" not in main and not seen["standard"]
    assert seen["modes"] == 0 and seen["threads"] == threads


def test_its_variables_are_a_shell_s(seen: dict[str, Any]) -> None:
    variables = seen["variables"]
    odd = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_COMPILE_THREADS", "HF_HUB_OFFLINE", "MY_TOKEN", "OPENBLAS_NUM_THREADS")
    assert not set(odd) & set(variables)
    assert not any("KERNEL_LSP" in name for name in variables)
    assert not any("kernel-lsp" in value for name, value in variables.items() if name not in ("PATH", "PYTHONPATH"))
    assert variables["TRITON_INTERPRET"] == "1" and variables["HOME"] == os.path.expanduser("~")
    assert Path(variables["TMPDIR"]) == Path(seen["main"]).parent


def test_its_folder_is_removed_when_the_worker_ends(seen: dict[str, Any]) -> None:
    assert wait_until(lambda: not Path(seen["main"]).parent.parent.exists(), 5)


@pytest.mark.slow
def test_a_worker_that_is_killed_leaves_no_folder(tmp_path: Path, write: Callable[..., str]) -> None:
    client = Client(env={**os.environ, "TMPDIR": str(tmp_path)})
    client.call("warm")
    assert len([one for one in tmp_path.iterdir() if one.name.startswith("tmp")]) == 1
    client.process.kill()
    assert wait_until(lambda: not [one for one in tmp_path.iterdir() if not one.name.startswith("torch")], 5)
