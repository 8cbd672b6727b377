"""Real processes on one store: several at once, killed ones, and those that may not write."""

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernel_lsp.store import history, validations
from kernel_lsp.store.info import info
from tests.store.made import KEY, found, keep

ROOT = Path(__file__).resolve().parents[2]
WRITER = """
import sys
from pathlib import Path
from kernel_lsp.store import sessions
from tests.store.made import found, keep
sessions.name("validate")
path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for i in range(count):
    # Long enough that a write takes many pages.
    keep(path, found(1 + i % 28, reason="x" * 30_000), path.parent / "norm.py", path.parent, source=f"# {name} {i}\\n" * 999)
    print(i, flush=True)
"""


def start(path, name, count, **options):
    arguments = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(arguments, cwd=ROOT, **pipes, **options)


def kernel_lsp(path, *arguments):
    environment = os.environ | {"KERNEL_LSP_STORE": str(path)}
    command = [sys.executable, "-m", "kernel_lsp.cli", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_two_writers_and_the_command_line_at_once(tmp_path):
    path = tmp_path / "store.sqlite"
    writers = [start(path, name, 30) for name in "ab"]
    for writer in writers:
        assert writer.stdout.readline() == "0\n"
    seen = [json.loads(kernel_lsp(path, "store", "info", "--json").stdout)["rows"]["verdicts"]]
    pruned = kernel_lsp(path, "store", "prune", "--older-than", "99999", "--json")
    assert json.loads(pruned.stdout)["verdicts"] == 0, pruned.stderr
    for writer in writers:
        _, said = writer.communicate(timeout=60)
        assert writer.returncode == 0, said
    seen.append(info(path).rows["verdicts"])
    assert 2 <= seen[0] <= seen[1] == 60
    assert info(path).rows["sessions"] == 2 and info(path).rows["kernels"] == 60
    entries = history.of_class(path, tmp_path / "norm.py", tmp_path, "Norm", 99).entries
    assert len(entries) == 60 and {entry.command for entry in entries} == {"validate"}


def test_a_killed_writer_leaves_a_store_that_works(tmp_path):
    path = tmp_path / "store.sqlite"
    finished = 0
    for round_, lines in enumerate((1, 5, 12)):
        with start(path, str(round_), 10_000) as writer:
            for _ in range(lines):
                assert writer.stdout.readline()
            os.kill(writer.pid, signal.SIGKILL)
            finished += lines + len(writer.stdout.read().splitlines())
        assert finished <= info(path).rows["verdicts"] <= finished + round_ + 1
    keep(path, found(31), tmp_path / "norm.py", tmp_path)
    assert validations.find(KEY, path) == found(31)
    with sqlite3.connect(path) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        query = "select count(*) from verdicts where id not in (select verdict from measurements) or body not in (select body from kernels)"
        assert connection.execute(query).fetchone() == (0,)  # no half of a write


def test_a_disk_that_is_full_is_said_and_loses_nothing_that_was_kept(tmp_path):
    path = tmp_path / "store.sqlite"
    limit = 600_000  # bytes: a file that reaches it cannot grow, as on a full disk

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with start(path, "a", 10_000, preexec_fn=full) as writer:
        out, said = writer.communicate(timeout=60)
    assert writer.returncode == 1 and "StoreUnusable" in said and "could not be written" in said
    kept = len(out.splitlines())
    assert kept > 2 and info(path).rows["verdicts"] == kept
    keep(path, found(31), tmp_path / "norm.py", tmp_path)
    assert validations.find(KEY, path) == found(31)


READER = """
import os, sys
from pathlib import Path
from kernel_lsp.errors import StoreUnusable
from kernel_lsp.store import validations
from tests.store.made import KEY, found
if os.getuid() == 0:  # whom no permissions stop
    os.setgid(65534)
    os.setuid(65534)
path = Path(sys.argv[1])
print(validations.find(KEY, path) == found())
try:
    validations.keep(KEY, found(2), path)
except StoreUnusable as error:
    print(error)
"""


@pytest.mark.parametrize("there", [True, False])
def test_a_home_that_cannot_be_written_is_read(there):
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # that another user may enter
    try:
        path = folder / "data" / "store.sqlite"
        path.parent.mkdir()
        if there:
            keep(path, found(), folder / "norm.py", folder)
            path.chmod(0o444)
        path.parent.chmod(0o555)
        folder.chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", READER, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
        )
    finally:
        path.parent.chmod(0o755)
        shutil.rmtree(folder)
    assert done.returncode == 0, done.stderr
    read, said = done.stdout.splitlines()
    assert read == str(there) and "could not be written" in said and "KERNEL_LSP_STORE" in said
