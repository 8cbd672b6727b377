"""``kernel-lsp watch`` as a user has it: in a terminal, in a pipe, and where the system has no watches left."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from kernel_lsp import analysis, schema
from kernel_lsp.commands.watch_display import Row, table_of
from kernel_lsp.commands.watched import Kernel
from kernel_lsp.store.validations import Validation
from tests import nursery
from tests.repository import branch_off, git
from tests.server.lsp_client import BODY, MODULE, VERDICT, validate_here, write_kernel

pytest.importorskip("torch", reason="the worker needs torch")
pytest.importorskip("triton", reason="the worker needs triton")

USES = "from lib.helper import FACTOR\n" + MODULE.replace("x * 2.0", "x * FACTOR")


class Watching:
    """The command with its output so far. ``terminal``: it stands in a terminal, where Ctrl-C is a key."""

    def __init__(self, folder: Path, *arguments: str, terminal: bool = False, prefix: tuple[str, ...] = ()) -> None:
        command = [*prefix, *nursery.CLI, "watch", *arguments]
        self.output, self._terminal = "", terminal
        if terminal:
            self._read, end = pty.openpty()
        else:
            self._read, end = os.pipe()
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=end if terminal else subprocess.DEVNULL,
            stdout=end,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40", "PYTHONUNBUFFERED": "1"},
            preexec_fn=self._begin,
        )
        os.close(end)

    def _begin(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell that starts the tests in the background ignores it
        if self._terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def until(self, pattern: str, seconds: float = 30.0) -> str:
        """All output from the first to the one that completes the pattern; what comes later is looked at anew."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, plain(self.output))):
            if time.monotonic() > deadline or not self._more(deadline):
                pytest.fail(f"“{pattern}” did not come; there was:\n{plain(self.output)}")
        said, self.output = plain(self.output)[: found.end()], plain(self.output)[found.end() :]
        return said

    def _more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
        try:
            data = os.read(self._read, 65536) if ready else b""
        except OSError:  # a terminal whose program ended
            return False
        self.output += data.decode()
        return bool(data) or not ready

    def interrupt(self) -> str:
        """Ctrl-C; the rest of the output."""
        began = time.monotonic()
        if self._terminal:
            os.write(self._read, b"\x03")
        else:
            os.killpg(self.process.pid, signal.SIGINT)
        while self._more(time.monotonic() + 10):
            pass
        assert self.process.wait(10) == 0
        assert time.monotonic() - began < 5
        assert "Traceback" not in self.output
        return plain(self.output)

    def hang_up(self) -> None:
        """The output has no reader any more."""
        os.close(self._read)
        self._read = -1

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
        if self._read >= 0:
            os.close(self._read)


def plain(text: str) -> str:
    """Without what moves the cursor and colours; an unfinished sequence at the end is kept."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


Start = Callable[..., Watching]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Watching] = []

    def begin(folder: Path, *arguments: str, terminal: bool = False, prefix: tuple[str, ...] = ()) -> Watching:
        running.append(Watching(folder, *arguments, terminal=terminal, prefix=prefix))
        return running[-1]

    yield begin
    for one in running:
        one.end()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel that this machine found right as its class is, and wrong with another factor."""
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    folder = tmp_path / "project"
    (folder / "lib").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    module, helper = folder / "double.py", folder / "lib" / "helper.py"
    module.write_text(USES)
    helper.write_text("FACTOR = 3.0\n")
    wrong = schema.from_json(schema.Verdict, VERDICT | {"status": "wrong", "reason": "outputs differ"})
    validate_here(fingerprint(module), BODY, Validation(wrong, None, None, "2026-01-02T00:00:00+00:00"))
    helper.write_text("FACTOR = 2.0\n")
    write_kernel(module)
    return folder


def fingerprint(module: Path) -> str:
    return analysis.fingerprint(module.read_text(), module, "Double")


def test_a_terminal_shows_the_table_and_a_line_for_a_checkout(project: Path, start: Start) -> None:
    branch_off(project, project / "lib/helper.py", 500)

    watch = start(project, terminal=True)
    watch.until("watching 1 kernel; Ctrl-C ends it")
    table = watch.until(r"Double +kernels/double_triton.py +ok +2.31× / 1.24× +2026-01-01 \d\d:\d\d")
    assert "class" in table and "speedup over" in table
    git(project, "checkout", "-q", "other")
    reason = r"\[lib/helper.py changed, validated before\]  outputs differ"
    watch.until(rf"Double \(kernels/double_triton.py\): ok → wrong  {reason}")
    watch.until(r"Double +kernels/double_triton.py +wrong")
    git(project, "checkout", "-q", "main")
    said = watch.until(r"wrong → ok, 2.31× / 1.24× over eager / compile")
    assert said.count("→") == 1  # the two checkouts were two rounds
    watch.until(r"Double +kernels/double_triton.py +ok")
    assert "→" not in watch.interrupt()


@pytest.mark.parametrize("limited", [False, True])
def test_folders_that_are_renamed_deleted_and_missing(project: Path, start: Start, limited: bool) -> None:
    """Also where the system has no watches left: the limit is a real one, of a user namespace of the command's own."""
    prefix: tuple[str, ...] = ()
    if limited:
        limit = "echo 2 > /proc/sys/user/max_inotify_watches"
        prefix = ("unshare", "-Ur", "sh", "-c", f'{limit} && exec "$@"', "sh")
        if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], capture_output=True).returncode:
            pytest.skip("no user namespaces here")
    watch = start(project.parent, "project", "missing", prefix=prefix)
    said = watch.until(r"watching 1 kernel[^\n]*\n")
    warning = "warning: The system cannot tell of changed files: the limit fs.inotify.max_user_watches is reached."
    assert said.count("warning") == said.count(warning) == limited
    assert "missing is not there yet" in said and ("by comparing files" in said) == limited

    kernels = project / "kernels"
    kernels.rename(project / "moved")
    said = watch.until(r"Double \(project/moved/double_triton.py\): ok[^\n]*\[new, validated before\]")
    assert "project/kernels/double_triton.py is gone" in said
    (project.parent / "missing").mkdir()
    saved = project.parent / "missing" / "saved"
    (project / "moved" / "double_triton.py").rename(saved)  # as editors save: written elsewhere, then renamed
    shutil.copy(project / "double.py", saved.parent)
    shutil.copytree(project / "lib", saved.parent / "lib")
    saved.rename(saved.parent / "double_triton.py")
    watch.until(r"Double \(missing/double_triton.py\): ok")
    shutil.rmtree(saved.parent)
    watch.until("missing/double_triton.py is gone")
    assert "warning" not in watch.interrupt()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_kernel_is_validated_for_real_and_the_worker_ends_with_the_command(project: Path, start: Start) -> None:
    watch = start(project, "--device", "interpreter", "double.py")
    watch.until("watching 1 kernel")
    source = project / "double.py"
    source.write_text(source.read_text().replace("x * FACTOR", "x + FACTOR"))
    said = watch.until(r"Double \(kernels/double_triton.py\): ok → \w[^\n]*\n", 120)
    assert "[double.py changed]" in said and "→ ok" not in said
    children = {
        int(pid) for pid in Path(f"/proc/{watch.process.pid}/task/{watch.process.pid}/children").read_text().split()
    }
    assert children
    watch.interrupt()
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)


def test_what_is_out_of_date_or_changes_is_said_before_its_verdict(
    project: Path, start: Start, gpu_driver: Path
) -> None:
    gpu_driver.write_text(f"{os.getpid()} 87\n")  # so no verdict comes
    helper = project / "lib" / "helper.py"
    helper.write_text("FACTOR = 4.0\n")
    watch = start(project)
    of = r"Double \(kernels/double_triton.py\)"
    said = watch.until(rf"{of}: the class changed since its kernel was validated; validating …(?s:.*)watching 1 kernel")
    assert "→" not in said
    helper.write_text("FACTOR = 5.0\n")
    watch.until(rf"{of}: lib/helper.py changed; validating …")
    watch.interrupt()


def test_a_class_that_was_renamed_is_said_as_check_says_it(project: Path, start: Start) -> None:
    watch = start(project)
    watch.until("watching 1 kernel")
    source = project / "double.py"
    source.write_text(source.read_text().replace("class Double(", "class Doubled("))
    watch.until(
        r"not validated  \[double.py changed\]  kernels/double_triton.py is the kernel of Double, and double.py has no such "
        r"class any more; did you mean Doubled\? If it was renamed, generate the kernel of double.py again; delete this one."
    )
    source.write_text("class Double(:\n")
    watch.until(r"double.py does not parse at line 1")
    watch.interrupt()


def test_while_others_keep_the_gpu_busy_nothing_is_validated(project: Path, start: Start, gpu_driver: Path) -> None:
    gpu_driver.write_text(f"{os.getpid()} 87\n")  # this is no process of the command's
    (project / "lib" / "helper.py").write_text("FACTOR = 4.0\n")
    watch = start(project)
    watch.until(rf"validation waits: the GPU is 87 % busy by pid {os.getpid()} \(")
    watch.interrupt()


def test_a_wrong_option_is_said_at_once(project: Path, start: Start) -> None:
    watch = start(project, "--seconds", "-1")
    watch.until("kernel-lsp: The setting seconds = -1.0 is not valid")
    assert watch.process.wait(10) == 2


def test_a_table_that_is_too_long_keeps_what_runs_and_what_is_wrong() -> None:
    rows = [Row(Kernel(Path(f"{n}.py"), f"Class{n}"), f"{n}.py", status="ok") for n in range(40)]
    rows[7].progress, rows[23].status, rows[31].progress = "validating 10 %", "wrong", "queued"
    console = Console(file=io.StringIO(), width=100)
    console.print(table_of(rows, 6))
    shown = console.file.getvalue()
    assert "Class7 " in shown and "validating 10 %" in shown and "Class23 " in shown
    assert "and 35 more, all ok" in shown
    assert shown.count(".py") == 5


def test_a_reader_that_goes_away_ends_it(project: Path, start: Start) -> None:
    watch = start(project)
    watch.until("watching 1 kernel")
    watch.hang_up()
    shutil.rmtree(project)  # there is something to tell, though the current folder is gone
    assert watch.process.wait(10) == 0


def test_a_narrow_table_keeps_the_classes_whole_and_leaves_the_files_out() -> None:
    files = ["kernels/running_mean_triton.py", "nopkg/blocks/kernels/swish_block_triton.py"]
    rows = [Row(Kernel(Path(name), name[8:-3].title()), name, status="ok") for name in files]
    for width, there in ((80, False), (132, True)):
        console = Console(file=io.StringIO(), width=width)
        console.print(table_of(rows, 6, width))
        shown = console.file.getvalue()
        assert "…" not in shown and all(row.kernel.class_name in shown for row in rows)
        assert all((name in shown) is there for name in files)
    rows[1].kernel = Kernel(Path(files[1]), rows[0].kernel.class_name)  # the file alone tells these apart
    console.print(table_of(rows, 6, 80))
    assert "kernel file" in console.file.getvalue()
