"""What is found in a cache of the layout that huggingface_hub documents.

That it is what the real client writes is shown in tests/commands/test_models.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from kernel_lsp.hub import cache
from tests.hub import hub_server

NEW, OLD = "a" * 40, "b" * 40


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    return tmp_path


def write(home: Path, repository: str, files: dict[str, bytes], commit: str = NEW, main: bool = True) -> Path:
    """Blobs by checksum, links with the names; returns the snapshot."""
    folder = home / "hub" / f"models--{repository.replace('/', '--')}"
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        link = folder / "snapshots" / commit / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    (folder / "refs").mkdir(exist_ok=True)
    if main:
        (folder / "refs" / "main").write_text(commit)
    return folder / "snapshots" / commit


def test_the_folder_is_where_huggingface_hub_has_it(home, monkeypatch):
    assert cache.cache_folder() == home / "hub"
    monkeypatch.delenv("HF_HOME")
    assert cache.cache_folder() == Path.home() / ".cache" / "huggingface" / "hub"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.cache_folder() == Path("/xdg/huggingface/hub")
    monkeypatch.setenv("HF_HOME", "~/hf")
    assert cache.cache_folder() == Path.home() / "hf" / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", "$HOME/models")
    assert cache.cache_folder() == Path.home() / "models"


@pytest.mark.parametrize(("variables", "expected"), [
    ({}, ""),
    ({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE"),
    ({"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "1"}, ""),
    ({"TRANSFORMERS_OFFLINE": "on"}, "TRANSFORMERS_OFFLINE"),
])  # fmt: skip
def test_offline_as_huggingface_hub_reads_it(home, monkeypatch, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.offline() == expected


def test_a_whole_model_is_found_and_quickly(home):
    snapshot = write(home, "facebook/KernelLLM", hub_server.transformers_model())
    assert cache.find("kernelllm") == cache.find("facebook/KernelLLM") == cache.find(str(snapshot)) == snapshot
    assert cache.find("kernelllm-gguf") is None
    best = min(timed("kernelllm") for _ in range(5))
    assert best < 0.005


def timed(name: str) -> float:
    began = time.perf_counter()
    cache.find(name)
    return time.perf_counter() - began


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "model-00002-of-00002.safetensors"])
def test_a_model_that_lacks_something_is_not(home, missing):
    files = hub_server.transformers_model()
    files.pop(missing)
    snapshot = write(home, "facebook/KernelLLM", files)
    assert cache.find("kernelllm") is None
    assert cache.find(str(snapshot)) is None
    (found,) = cache.found()
    assert (
        found.kind == "safetensors" and (missing if missing != "tokenizer.json" else "the tokenizer") == found.missing
    )


def test_weights_that_were_cut_short_or_whose_content_is_gone_are_noticed(home):
    snapshot = write(home, "facebook/KernelLLM", hub_server.transformers_model())
    shard = snapshot / "model-00001-of-00002.safetensors"
    os.truncate(shard.resolve(), shard.stat().st_size - 1)
    assert cache.find("kernelllm") is None
    shard.resolve().unlink()
    assert cache.find("kernelllm") is None
    assert cache.found()[0].missing == shard.name


def test_an_index_that_does_not_parse_is_named(home):
    files = hub_server.transformers_model() | {"model.safetensors.index.json": b"{"}
    assert "index.json" in cache.missing_in_folder(write(home, "facebook/KernelLLM", files))


def test_a_single_file_of_weights_and_a_sentencepiece_or_bpe_tokenizer_do(home):
    files = {"config.json": b"{}", "tokenizer.model": b"", "model.safetensors": hub_server.safetensors(1, 10)}
    assert cache.find("a/b") is None
    assert cache.find("a/b") is None and write(home, "a/b", files) == cache.find("a/b")
    files = {
        "config.json": b"{}",
        "vocab.json": b"{}",
        "merges.txt": b"",
        "model.safetensors": files["model.safetensors"],
    }
    assert write(home, "a/c", files) == cache.find("a/c")


def test_an_older_snapshot_serves_while_the_newest_is_not_whole(home):
    old = write(home, "facebook/KernelLLM", hub_server.transformers_model(), OLD)
    write(home, "facebook/KernelLLM", {"config.json": b"{ }"}, NEW)
    assert cache.find("kernelllm") == old


def test_of_several_quantisations_the_last_fetched_or_the_one_named(home):
    snapshot = write(home, "Mungert/KernelLLM-GGUF", {"KernelLLM-q4_k_m.gguf": hub_server.gguf(100, 1)})
    write(home, "Mungert/KernelLLM-GGUF", {"KernelLLM-q8_0.gguf": hub_server.gguf(200, 2)})
    os.utime(snapshot / "KernelLLM-q8_0.gguf", (1, 1))
    assert cache.find("kernelllm-gguf") == snapshot / "KernelLLM-q4_k_m.gguf"
    assert cache.find("kernelllm-gguf:Q8_0") == snapshot / "KernelLLM-q8_0.gguf"
    assert cache.find("Mungert/KernelLLM-GGUF:KernelLLM-q8_0.gguf") == snapshot / "KernelLLM-q8_0.gguf"
    assert cache.find("bartowski/facebook_KernelLLM-GGUF") is None
    assert cache.find(str(snapshot / "KernelLLM-q8_0.gguf")) == snapshot / "KernelLLM-q8_0.gguf"


def test_a_split_gguf_needs_all_parts(home):
    first, second = "big/x-Q8_0-00001-of-00002.gguf", "big/x-Q8_0-00002-of-00002.gguf"
    snapshot = write(home, "a/b-GGUF", {first: hub_server.gguf(100, 1)})
    assert cache.find("a/b-GGUF") is None
    write(home, "a/b-GGUF", {second: hub_server.gguf(100, 2)})
    assert cache.find("a/b-GGUF:q8_0") == snapshot / first


def test_a_file_that_is_no_gguf_is_not_taken_for_one(home):
    snapshot = write(home, "a/b-GGUF", {"x-Q8_0.gguf": b"<html>please sign in</html>"})
    assert cache.find("a/b-GGUF") is None
    assert cache.find(str(snapshot / "x-Q8_0.gguf")) is None


def test_unfinished_downloads_are_listed_and_other_models_are_not(home):
    write(home, "whisper/small", {"config.json": b'{"architectures": ["WhisperModel"]}', "model.safetensors": b""})
    write(home, "org/config-only", {"config.json": b'{"architectures": ["LlamaForCausalLM"]}'})
    blobs = write(home, "bartowski/facebook_KernelLLM-GGUF", {"README.md": b""}).parents[1] / "blobs"
    (blobs / f"{'0' * 64}.facebook_KernelLLM-Q5_K_M.gguf{cache.PARTIAL}").write_bytes(bytes(1000))
    (found,) = cache.found()
    assert (found.repository, found.kind, found.quantisation, found.bytes) == (
        "bartowski/facebook_KernelLLM-GGUF",
        "gguf",
        "Q5_K_M",
        1000,
    )
    assert found.missing and cache.begun(found.repository) and not cache.begun("org/config-only")


def test_an_update_that_was_begun_is_listed_beside_the_version_in_use(home):
    snapshot = write(home, "facebook/KernelLLM", hub_server.transformers_model())
    (snapshot.parents[1] / "blobs" / ("0" * 64 + cache.PARTIAL)).write_bytes(bytes(1000))
    whole, begun = cache.found()
    assert not whole.missing and "newer" in begun.missing


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..", "a/../b", "", "~nobody/x", "/nowhere", "x.gguf", "a/b:c/../d"]
)
def test_names_that_lead_nowhere_find_nothing(home, name):
    assert cache.find(name) is None


def test_a_cache_that_is_not_there_or_is_no_folder_holds_nothing(home, monkeypatch):
    assert cache.found() == [] and cache.find("kernelllm") is None
    (home / "file").write_text("")
    monkeypatch.setenv("HF_HUB_CACHE", str(home / "file"))
    assert cache.found() == [] and cache.find("kernelllm") is None


def test_headers_that_lie_are_refused(home, tmp_path):
    files = {"config.json": b"{}", "tokenizer.json": b"{}"}
    for wrong in (
        b"",
        b"\xff" * 8,
        (2).to_bytes(8, "little") + b"[]",
        (4).to_bytes(8, "little") + json.dumps({}).encode(),
    ):
        folder = tmp_path / hashlib.sha1(wrong).hexdigest()
        folder.mkdir()
        for name, content in (files | {"model.safetensors": wrong}).items():
            (folder / name).write_bytes(content)
        assert cache.missing_in_folder(folder) == "model.safetensors", wrong
