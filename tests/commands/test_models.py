"""``kernel-lsp models`` as a user runs it, with the real huggingface_hub client and a Hub on loopback."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_lsp.hub import cache
from tests.hub.hub_server import COMMIT, QUANTISED, TINY

pytest_plugins = ["tests.hub.hub_home"]
pytestmark = pytest.mark.models


def test_a_pull_fetches_what_is_needed_and_the_cache_has_it(home, hub):
    done = home.run("pull", TINY, "--accept-licence")
    assert done.returncode == 0, done.stderr
    assert f"Licence of {TINY}: llama3.1, {hub.endpoint}/{TINY}/blob/main/LICENSE" in done.stderr
    there = home.files(TINY)
    assert {name: hub.repositories[TINY].files[name] for name in there} == there
    left_out = {"pytorch_model-00001-of-00001.bin", "original/consolidated.00.pth", "plot.png"}
    assert set(hub.repositories[TINY].files) - set(there) == left_out

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


def test_a_cache_that_the_real_client_wrote_is_found(home, hub):
    program = f"import huggingface_hub as h; print(h.snapshot_download({TINY!r}, ignore_patterns=['*.bin', '*.pth']))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=home.environment, check=True
    )
    assert cache.find(TINY) == Path(done.stdout.strip())
    began = time.perf_counter()
    cache.find(TINY)
    assert time.perf_counter() - began < 0.05  # 5 ms on a machine that does nothing else
    assert home.json("pull", TINY)["fetched"] == 0
    (row,) = [row for row in home.json("list")["models"] if row["repository"] == TINY]
    assert (row["state"], row["generator"], row["path"]) == ("complete", "kernelllm", done.stdout.strip())


def test_one_quantisation_is_fetched_and_split_files_all(home, hub):
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


def on_a_terminal(home, arguments: list[str], answers: dict[str, str], second: str = "") -> tuple[int, str]:
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


def test_an_unfinished_download_is_listed_by_name_and_removed_alone(home, hub):
    home.json("pull", f"{QUANTISED}:Q5_K_M", "--yes")
    hub.cuts["tiny-Q4_K_M.gguf"] = [50_000, *[0] * 20]
    home.json("pull", f"{QUANTISED}:Q4_K_M", status=2)
    states = {
        row["quantisation"]: row["state"] for row in home.json("list")["models"] if row["repository"] == QUANTISED
    }
    assert states == {"Q4_K_M": "incomplete", "Q5_K_M": "complete"}
    assert home.json("remove", f"{QUANTISED}:q4_k_m", "--yes")["freed"] == 50_000
    assert home.partial(QUANTISED) == 0 and "tiny-Q5_K_M.gguf" in home.files(QUANTISED)


def test_remove_frees_a_download_that_was_not_finished(home, hub):
    hub.cuts["tiny-Q4_K_M.gguf"] = [50_000, *[0] * 20]
    home.json("pull", f"{QUANTISED}:Q4_K_M", "--yes", status=2)
    assert home.json("remove", QUANTISED, "--yes")["freed"] >= 50_000
    assert not home.repository(QUANTISED).exists()


def disk_usage(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("blobs/*"))
