"""``kernel-lsp models`` as a user runs it, with the real huggingface_hub client and a Hub on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "hub"))

import hub_server
from hub_server import COMMIT, TOKEN, Repository

from kernel_lsp.hub import cache

TINY, QUANTISED = "maker/Tiny", "maker/Tiny-GGUF"
Done = subprocess.CompletedProcess


@pytest.fixture
def hub():
    with hub_server.serving() as hub:
        hub.repositories[TINY] = Repository(hub_server.transformers_model(), {"license": "llama3.1"})
        hub.repositories[QUANTISED] = Repository(hub_server.gguf_repository())
        yield hub


class Home:
    """An empty cache, and the command that uses it."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING", "TRANSFORMERS_"))}
        self.environment = kept | {
            "HF_HOME": str(folder),
            "HF_ENDPOINT": endpoint,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "COLUMNS": "200",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "kernel_lsp.cli", "models", *arguments]

    def run(self, *arguments: str, **environment: str) -> Done[str]:
        done = subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            env=self.environment | environment,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def json(self, *arguments: str, status: int = 0, **environment: str):
        done = self.run(*arguments, "--json", **environment)
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )

    def files(self, repository: str) -> dict[str, bytes]:
        snapshot = self.repository(repository) / "snapshots" / COMMIT
        return {p.relative_to(snapshot).as_posix(): p.read_bytes() for p in snapshot.rglob("*") if p.is_file()}

    def repository(self, name: str) -> Path:
        return self.folder / "hub" / f"models--{name.replace('/', '--')}"

    def partial(self, name: str) -> int:
        return sum(path.stat().st_size for path in (self.repository(name) / "blobs").glob("*" + cache.PARTIAL))


@pytest.fixture
def home(tmp_path, hub):
    return Home(tmp_path / "home", hub.endpoint)


pytestmark = pytest.mark.models


def test_a_pull_fetches_what_is_needed_and_the_cache_has_it(home, hub, monkeypatch):
    done = home.run("pull", TINY, "--accept-licence")
    assert done.returncode == 0, done.stderr
    assert f"Licence of {TINY}: llama3.1, {hub.endpoint}/{TINY}/blob/main/LICENSE" in done.stderr
    there = home.files(TINY)
    assert {name: hub.repositories[TINY].files[name] for name in there} == there
    left_out = {"pytorch_model-00001-of-00001.bin", "original/consolidated.00.pth", "plot.png"}
    assert set(hub.repositories[TINY].files) - set(there) == left_out

    monkeypatch.setenv("HF_HOME", str(home.folder))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    assert cache.find(TINY) == home.repository(TINY) / "snapshots" / COMMIT
    assert (home.repository(TINY) / "refs" / "main").read_text() == COMMIT

    from huggingface_hub import scan_cache_dir, snapshot_download  # as everybody else sees it

    (repo,) = scan_cache_dir(home.folder / "hub").repos
    assert repo.repo_id == TINY and repo.size_on_disk == sum(map(len, set(there.values())))
    assert snapshot_download(TINY, cache_dir=home.folder / "hub", local_files_only=True) == str(cache.find(TINY))

    asked = len(hub.asked)
    document = home.json("pull", TINY)  # nothing to fetch, so no licence to accept
    assert document["fetched"] == 0 and document["path"] == str(cache.find(TINY))
    assert len(hub.asked) == asked + 1  # what there is; no file was asked for


def test_a_cache_that_the_real_client_wrote_is_found(home, hub, monkeypatch):
    program = f"import huggingface_hub as h; print(h.snapshot_download({TINY!r}, ignore_patterns=['*.bin', '*.pth']))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=home.environment, check=True
    )
    monkeypatch.setenv("HF_HOME", str(home.folder))
    assert cache.find(TINY) == Path(done.stdout.strip())
    began = time.perf_counter()
    cache.find(TINY)
    assert time.perf_counter() - began < 0.05  # 5 ms on a machine that does nothing else
    assert home.json("pull", TINY)["fetched"] == 0
    (row,) = [row for row in home.json("list")["models"] if row["repository"] == TINY]
    assert (row["state"], row["generator"], row["path"]) == ("complete", "kernelllm", done.stdout.strip())


def test_one_quantisation_is_fetched_and_split_files_all(home, hub, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(home.folder))
    document = home.json("pull", f"{QUANTISED}:q5_k_m", "--accept-licence")
    assert set(home.files(QUANTISED)) == {"tiny-Q5_K_M.gguf", "README.md"}
    assert Path(document["path"]) == cache.find(QUANTISED) == cache.find(f"{QUANTISED}:Q5_K_M")
    assert (document["kind"], document["quantisation"]) == ("gguf", "Q5_K_M")
    document = home.json("pull", f"{QUANTISED}:tiny-f32-00001-of-00002.gguf")
    assert set(home.files(QUANTISED)) >= {f"tiny-f32/tiny-f32-0000{i}-of-00002.gguf" for i in (1, 2)}
    assert document["path"].endswith("tiny-f32-00001-of-00002.gguf")
    assert {row["quantisation"] for row in home.json("list")["models"] if row["repository"] == QUANTISED} == {
        "Q5_K_M",
        "f32",
    }


def test_the_quantisation_is_proposed_from_the_memory(home):
    done = home.run("pull", QUANTISED, "--yes")
    assert done.returncode == 0
    taken = re.search(r"Taking (\S+) .*: (.+)\. Another: ", done.stderr)
    assert taken and taken[1] in ("Q4_K_M", "Q8_0"), done.stderr  # without a GPU, with one
    assert ("CPU" in taken[2]) == (taken[1] == "Q4_K_M")


def test_an_unknown_quantisation_lists_what_there_is(home):
    error = home.json("pull", f"{QUANTISED}:Q3_K", status=2)["error"]
    assert error["code"] == "QuantisationUnknown"
    assert "Q4_K_M, Q5_K_M, Q6_K, Q8_0, bf16, f32" in error["message"]


def test_without_a_terminal_the_licence_must_be_accepted(home, hub):
    done = home.run("pull", TINY)
    assert done.returncode == 2
    assert "llama3.1" in done.stderr and "--accept-licence" in done.stderr
    assert not home.repository(TINY).exists()


def test_on_a_terminal_the_licence_and_the_quantisation_are_asked_for(home):
    status, said = on_a_terminal(home, ["pull", QUANTISED], {"Which one?": "nonsense", "accept it?": "n"}, "q5_k_m")
    assert status == 1 and "Nothing was changed" in said and not home.repository(QUANTISED).exists()
    status, said = on_a_terminal(home, ["pull", QUANTISED], {"Which one?": "", "accept it?": "y"})
    assert status == 0, said
    assert re.search(r"Proposed: (Q4_K_M|Q8_0) ", said)
    status, said = on_a_terminal(home, ["remove", QUANTISED], {"Remove": "y"})
    assert status == 0 and not home.repository(QUANTISED).exists()


def on_a_terminal(home: Home, arguments: list[str], answers: dict[str, str], second: str = "") -> tuple[int, str]:
    """Run the command on a terminal of its own. ``second``: the answer when the same question comes again."""
    parent, child = pty.openpty()
    with subprocess.Popen(
        home.command(*arguments), stdin=child, stdout=child, stderr=child, env=home.environment, start_new_session=True
    ) as running:
        os.close(child)
        said, seen, deadline = "", 0, time.monotonic() + 30
        while time.monotonic() < deadline:
            if select.select([parent], [], [], 0.1)[0]:
                try:
                    said += os.read(parent, 4096).decode()
                except OSError:  # the other end is closed
                    break
            for question in list(answers):
                if (at := said.find(question, seen)) >= 0 and said.endswith("] "):
                    seen = at + len(question)
                    os.write(parent, f"{answers.pop(question)}\n".encode())
                    if second:
                        answers, second = answers | {question: second}, ""
        os.close(parent)
        assert "Traceback" not in said, said
        return running.wait(10), said


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


def test_a_server_that_refuses_is_named_with_its_words(home, hub):
    hub.status = 403
    error = home.json("pull", f"{QUANTISED}:Q4_K_M", "--yes", status=2)["error"]
    assert error["code"] == "HubRefused" and "403" in error["message"] and "The server is tired" in error["message"]


def test_offline(home, hub):
    before = len(hub.asked)
    document = home.json("list", HF_HUB_OFFLINE="1")
    assert document["offline"] is True and document["models"]
    for arguments, environment, reason in (
        (["--offline"], {}, "--offline"),
        ([], {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE"),
        ([], {"TRANSFORMERS_OFFLINE": "yes"}, "TRANSFORMERS_OFFLINE"),
    ):
        error = home.json("pull", TINY, "--yes", *arguments, status=2, **environment)["error"]
        assert error["code"] == "HubOffline" and reason in error["message"]
    assert len(hub.asked) == before
    path = home.json("pull", TINY, "--yes")["path"]
    assert home.json("pull", TINY, "--offline")["path"] == path


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
        with Home(small, hub.endpoint).start("pull", f"{QUANTISED}:Q8_0", "--yes", "--json-progress") as running:
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


def test_an_interrupted_update_leaves_the_older_version_in_use(home, hub, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(home.folder))
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


def test_remove_frees_what_it_says(home, hub):
    for quantisation in ("Q4_K_M", "Q5_K_M"):
        home.json("pull", f"{QUANTISED}:{quantisation}", "--yes")
    done = home.run("remove", f"{QUANTISED}:Q4_K_M")
    assert done.returncode == 2 and "--yes" in done.stderr
    before = disk_usage(home.folder)
    document = home.json("remove", f"{QUANTISED}:Q4_K_M", "--yes")
    assert before - disk_usage(home.folder) == document["freed"] == 200_000
    assert set(home.files(QUANTISED)) == {"tiny-Q5_K_M.gguf", "README.md"}
    document = home.json("remove", QUANTISED, "--yes")
    assert document["freed"] == 400_000 + len(b"# Quantised\n")
    assert not home.repository(QUANTISED).exists()
    assert home.json("remove", QUANTISED, "--yes", status=2)["error"]["code"] == "ModelNotHere"


def test_remove_frees_a_download_that_was_not_finished(home, hub):
    hub.cuts["tiny-Q4_K_M.gguf"] = [50_000, *[0] * 20]
    home.json("pull", f"{QUANTISED}:Q4_K_M", "--yes", status=2)
    assert home.json("remove", QUANTISED, "--yes")["freed"] >= 50_000
    assert not home.repository(QUANTISED).exists()


def disk_usage(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("blobs/*"))
