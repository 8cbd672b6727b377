"""What can go wrong on the way from the Hub: the real command and client, and a Hub that does as it is told."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from kernel_lsp.hub import cache
from tests.hub import hub_server
from tests.hub.hub_server import QUANTISED, TINY, TOKEN, Repository

pytest_plugins = ["tests.hub.hub_home"]
pytestmark = pytest.mark.models


def test_a_lost_connection_is_taken_up_again(home, hub):
    shard = "model-00001-of-00002.safetensors"
    hub.cuts[shard] = [100_000, 100_000]
    assert home.run("pull", TINY, "--yes").returncode == 0
    assert hub.ranges(shard) == ["", "bytes=100000-", "bytes=200000-"]
    assert home.files(TINY)[shard] == hub.repositories[TINY].files[shard]


def test_a_download_that_broke_off_goes_on_the_next_time(home, hub):
    shard = "model-00002-of-00002.safetensors"
    hub.cuts[shard] = [120_000, *[0] * 20]
    document = home.json("pull", TINY, "--yes", status=2)
    assert document["error"]["code"] == "DownloadInterrupted"
    assert home.partial(TINY) == 120_000
    (row,) = [row for row in home.json("list")["models"] if row["repository"] == TINY]
    assert row["state"] == "incomplete" and row["missing"] == shard and row["on_disk"] > 120_000

    hub.cuts.clear()
    hub.asked.clear()
    document = home.json("pull", TINY)  # the licence was accepted
    assert hub.ranges(shard) == ["bytes=120000-"]
    assert document["fetched"] == len(hub.repositories[TINY].files[shard]) - 120_000
    assert home.files(TINY)[shard] == hub.repositories[TINY].files[shard]
    assert home.partial(TINY) == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_leaves_what_was_fetched(home, hub, how):
    hub.repositories[QUANTISED].files["tiny-Q8_0.gguf"] = hub_server.gguf(8 << 20)
    hub.seconds_per_chunk = 0.05
    with home.start("pull", f"{QUANTISED}:Q8_0", "--yes", "--json-progress") as running:
        deadline = time.monotonic() + 30
        while home.partial(QUANTISED) < 500_000:
            assert running.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        running.send_signal(how)
        out, err = running.communicate(timeout=5)
    assert "Traceback" not in err
    lines = [json.loads(line) for line in out.splitlines()]
    assert all(0 <= line["fraction"] <= 1 and "of 8 MB" in line["message"] for line in lines) and len(lines) > 1
    if how == signal.SIGINT:
        assert running.returncode == 130 and "the same command goes on from there" in err
    kept = home.partial(QUANTISED)
    assert kept >= 490_000
    hub.seconds_per_chunk = 0
    hub.asked.clear()
    done = home.run("pull", f"{QUANTISED}:Q8_0", "--json-progress")
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["fraction"] == 1.0 and Path(last["path"]).name == "tiny-Q8_0.gguf"
    assert hub.ranges("tiny-Q8_0.gguf") == [f"bytes={kept}-"]


def test_two_pulls_of_the_same_model_do_not_mix(home, hub):
    hub.repositories[QUANTISED].files["tiny-Q8_0.gguf"] = hub_server.gguf(4 << 20)
    hub.seconds_per_chunk = 0.05
    with home.start("pull", f"{QUANTISED}:Q8_0", "--yes") as first:
        while home.partial(QUANTISED) == 0:
            assert first.poll() is None
            time.sleep(0.02)
        assert home.json("pull", f"{QUANTISED}:Q8_0", status=2)["error"]["code"] == "PullRunning"
        assert first.wait(20) == 0


@pytest.mark.parametrize("file", ["model-00001-of-00002.safetensors", "config.json"])
def test_a_damaged_file_is_fetched_again_once(home, hub, file):
    hub.wrong[file] = 1
    assert home.run("pull", TINY, "--yes").returncode == 0
    assert home.files(TINY)[file] == hub.repositories[TINY].files[file]
    shutil.rmtree(home.folder)
    hub.wrong[file] = 2
    document = home.json("pull", TINY, "--yes", status=2)
    assert document["error"]["code"] == "DownloadCorrupt" and file in document["error"]["message"]
    assert file not in home.files(TINY)
    assert home.json("list")["models"][-1]["state"] != "complete"


def test_a_file_that_is_shorter_than_the_hub_says_is_damaged(home, hub):
    hub.short["tiny-Q4_K_M.gguf"] = 150_000
    document = home.json("pull", f"{QUANTISED}:Q4_K_M", "--yes", status=2)
    assert document["error"]["code"] == "DownloadCorrupt" and "150000 bytes, not 200000" in document["error"]["message"]


def test_a_file_of_the_cache_that_was_cut_short_is_fetched_again(home, hub):
    document = home.json("pull", f"{QUANTISED}:Q4_K_M", "--yes")
    os.truncate(document["path"], 1000)
    assert home.json("pull", f"{QUANTISED}:Q4_K_M")["fetched"] > 0
    assert home.files(QUANTISED)["tiny-Q4_K_M.gguf"] == hub.repositories[QUANTISED].files["tiny-Q4_K_M.gguf"]


def test_a_gated_repository_needs_its_conditions_accepted_and_the_token_goes_nowhere_else(home, hub):
    hub.repositories[TINY].gated = True
    error = home.json("pull", TINY, "--yes", status=2)["error"]
    assert error["code"] == "RepositoryGated"
    assert f"{hub.endpoint}/{TINY}" in error["message"] and "hf auth login" in error["message"]
    done = home.run("pull", TINY, "--yes", "--verbose", HF_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    sent = {asked.authorized for asked in hub.asked if asked.path.startswith("/cdn/") and asked.method == "GET"}
    assert sent == {False}


def test_an_unknown_repository_and_an_impossible_name(home):
    assert home.json("pull", "maker/Nothing", status=2)["error"]["code"] == "RepositoryUnknown"
    for name in ("kernellm", "../../etc:passwd", "a/b/c", "maker/..", "maker/Tiny:"):
        error = home.json("pull", name, status=2)["error"]
        assert error["code"] == "ModelNameInvalid" and "kernelllm-gguf" in error["message"], name


def test_a_repository_without_a_model_is_said_to_have_none(home, hub):
    hub.repositories["maker/Pickles"] = Repository({"config.json": b"{}", "pytorch_model.bin": b"1" * 60_000})
    assert home.json("pull", "maker/Pickles", status=2)["error"]["code"] == "ModelNotUsable"


def test_no_network(home):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        began = time.monotonic()
        error = home.json("pull", "kernelllm", "--yes", status=2, HF_ENDPOINT=endpoint)["error"]
    assert error["code"] == "HubUnreachable" and endpoint in error["message"] and "HTTPS_PROXY" in error["message"]
    assert time.monotonic() - began < 15


def test_a_sign_in_page_instead_of_the_hub(home, hub):
    hub.portal = True
    error = home.json("pull", TINY, "--yes", status=2)["error"]
    assert error["code"] == "HubUnreachable" and "not the Hub" in error["message"]


def test_a_cache_that_cannot_be_written(home, tmp_path):
    (tmp_path / "file").write_text("")
    error = home.json("pull", f"{QUANTISED}:Q4_K_M", "--yes", status=2, HF_HOME=str(tmp_path / "file"))["error"]
    assert error["code"] == "CacheNotWritable" and str(tmp_path / "file") in error["message"]


def test_a_server_that_refuses_is_named_with_its_words(home, hub):
    hub.status = 403
    error = home.json("pull", f"{QUANTISED}:Q4_K_M", "--yes", status=2)["error"]
    assert error["code"] == "HubRefused" and "403" in error["message"] and "The server is tired" in error["message"]


def test_too_little_disk_is_said_before_anything_is_fetched(home, hub):
    """A real file system of 2 MB."""
    if os.getuid() != 0:
        pytest.skip("mounting a small file system needs root")
    small = home.folder.with_name("small")
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        hub.repositories[QUANTISED].files["tiny-Q8_0.gguf"] = hub_server.gguf(3 << 20)
        error = home.json("pull", f"{QUANTISED}:Q8_0", "--yes", status=2, HF_HOME=str(small))["error"]
        assert error["code"] == "TooLittleDisk"
        assert "3 MB" in error["message"] and "has 2 MB left" in error["message"] and str(small) in error["message"]
        assert not any(small.iterdir()) and not hub.ranges("tiny-Q8_0.gguf")

        # It fits, but somebody else fills the disk meanwhile.
        hub.repositories[QUANTISED].files["tiny-Q8_0.gguf"] = hub_server.gguf(1800 << 10)
        hub.seconds_per_chunk = 0.05
        other = small / "other"
        with type(home)(small, hub.endpoint).start("pull", f"{QUANTISED}:Q8_0", "--yes", "--json-progress") as running:
            while not list(small.rglob("*" + cache.PARTIAL)):
                assert running.poll() is None
                time.sleep(0.02)
            with contextlib.suppress(OSError), other.open("wb", buffering=0) as file:
                while file.write(bytes(1 << 16)):
                    pass
            out, err = running.communicate(timeout=20)
        assert running.returncode == 2 and "Traceback" not in err
        assert json.loads(out.splitlines()[-1])["error"]["code"] == "TooLittleDisk"
        other.unlink()
        hub.seconds_per_chunk = 0
        assert home.json("pull", f"{QUANTISED}:Q8_0", HF_HOME=str(small))["fetched"] < 1800 << 10
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_model_too_large_for_the_memory_is_fetched_only_when_told(home, hub):
    """The Hub states a size that no machine has; nothing of it is sent."""
    hub.repositories[QUANTISED].files = {"huge-Q4_K_M.gguf": Huge(hub_server.gguf(60_000))}
    for name in (QUANTISED, f"{QUANTISED}:Q4_K_M"):
        error = home.json("pull", name, "--yes", status=2)["error"]
        assert error["code"] == "TooLittleMemory" and "--force" in error["message"]
        assert home.json("pull", name, "--yes", "--force", status=2)["error"]["code"] == "TooLittleDisk"


class Huge(bytes):
    def __len__(self) -> int:
        return 10**15


def test_an_interrupted_update_leaves_the_older_version_in_use(home, hub):
    old = home.json("pull", TINY, "--yes")["path"]
    shard = "model-00001-of-00002.safetensors"
    hub.repositories[TINY].files[shard] = hub_server.safetensors(5, 50_000)
    hub.repositories[TINY].commit = "f" * 40
    hub.cuts[shard] = [100_000, *[0] * 20]
    assert home.json("pull", TINY, status=2)["error"]["code"] == "DownloadInterrupted"
    assert cache.find(TINY) == Path(old)
    hub.cuts.clear()
    document = home.json("pull", TINY)
    assert document["fetched"] == len(hub.repositories[TINY].files[shard]) - 100_000
    assert cache.find(TINY) == Path(document["path"]) != Path(old)
