"""The trained model, from the cache or trained now. ``python -m tests.tiny_model.cache`` prints where it is."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.tiny_model.cases import CASES, HERE, ROOT

NAME = "TinyKernelLLM"
_FILES = ["cases.py", "gguf_export.py", "kernelllm.py.txt", "modules.py", "train.py"]


def trained() -> Path:
    """The folder of the trained model (see train.py for what is in it).

    In ``$XDG_CACHE_HOME/kernel-lsp-tests``, under a hash of all that goes into it. If it is not there it is trained,
    in a process of its own; other callers wait meanwhile, so give the first test that needs it a timeout of ten minutes.
    ``$KERNEL_LSP_TINY_MODEL`` names a folder that was trained elsewhere.
    """
    if elsewhere := os.environ.get("KERNEL_LSP_TINY_MODEL"):
        return Path(elsewhere)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernel-lsp-tests"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "tiny-model.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        prompts = _prompts(cache)
        versions = [importlib.metadata.version(name).split(".")[0] for name in ("tokenizers", "transformers")]
        answers = sorted((HERE / "answers").glob("*.txt"))
        inputs = [*(HERE / name for name in _FILES), *answers, *sorted({case.path for case in CASES.values()})]
        folder = cache / f"tiny-model-{_hash(inputs, [*versions, prompts.read_text('utf-8')])}"
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                _train(Path(scratch) / folder.name / NAME, prompts)
                os.rename(Path(scratch) / folder.name, folder)
    return folder / NAME


def _train(folder: Path, prompts: Path) -> None:
    """Raises RuntimeError with the last of what the training said."""
    _say("training the tiny model, a minute or two")
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.tiny_model.train", str(folder), str(prompts)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the tiny model could not be trained:\n{done.stderr[-4000:]}")
    _say(f"trained in {time.monotonic() - began:.0f} s: {folder.parent.name}")


def _prompts(cache: Path) -> Path:
    """The file with the prompts, written anew when anything has changed that may change them."""
    sources = [*(ROOT / "kernel_lsp").rglob("*.py"), *(case.path for case in CASES.values())]
    sources += [HERE / name for name in ("prompts.py", "cases.py", "kernelllm.py.txt")]
    versions = [sys.version, importlib.metadata.version("torch")]
    file = cache / f"tiny-model-prompts-{_hash(sorted(set(sources)), versions)}.json"
    if not file.exists():
        _say("writing the tiny model's prompts")
        command = [sys.executable, "-m", "tests.tiny_model.prompts"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the tiny model's prompts could not be written:\n{done.stderr[-4000:]}")
        for old in cache.glob("tiny-model-prompts-*.json"):
            old.unlink()
        written = file.with_suffix(".new")
        written.write_text(json.dumps(json.loads(done.stdout), indent=1), "utf-8")
        written.replace(file)
    return file


def _hash(files: Iterable[Path], texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:16]


def _say(text: str) -> None:
    print(f"tests.tiny_model: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    print(trained())
