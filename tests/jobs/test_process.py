"""The child process: lines of any length, its end with last words, and nothing left behind."""

import asyncio
import sys
import time

import psutil

from kernel_lsp.jobs.process import Process, how_it_ended


async def run(program: str) -> tuple[Process, list[bytes], list[bytes], asyncio.Event]:
    out: list[bytes] = []
    err: list[bytes] = []
    ended = asyncio.Event()
    process = await Process.start([sys.executable, "-c", program], None, out.append, err.append, lambda _: ended.set())
    return process, out, err, ended


async def test_a_line_of_ten_megabytes_arrives_whole():
    process, out, _, ended = await run("import sys; sys.stdout.write('a' * 10_000_000 + '\\nb\\n\\nc')")
    await asyncio.wait_for(ended.wait(), 20)
    assert [len(line) for line in out] == [10_000_000, 1, 0]  # "c" is no line: its end is missing
    assert process.status == 0


async def test_what_is_written_arrives_and_end_of_input_ends_it():
    process, out, _, ended = await run("import sys\nfor line in sys.stdin: sys.stdout.write(line); sys.stdout.flush()")
    process.write({"text": "x" * 300_000})
    process.end_of_input()
    await asyncio.wait_for(ended.wait(), 20)
    assert len(out[0]) == 300_000 + len('{"text": ""}')


async def test_last_words_are_read_before_the_end_is_reported():
    process, _, err, ended = await run("import os; os.write(2, b'first\\nno end of line'); os.kill(os.getpid(), 11)")
    await asyncio.wait_for(ended.wait(), 20)
    assert err == [b"first", b"no end of line"]
    assert how_it_ended(process.status) == "killed by SIGSEGV"


async def test_one_that_closes_its_output_is_ended():
    process, _, _, ended = await run("import os, time; os.close(1); time.sleep(600)")
    await asyncio.wait_for(ended.wait(), 20)
    assert process.status == -9


async def test_kill_takes_children_along():
    program = (
        "import subprocess, sys, time\n"
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid, flush=True)\n"
        "time.sleep(600)"
    )
    process, out, _, _ = await run(program)
    while not out:
        await asyncio.sleep(0.01)
    child = psutil.Process(int(out[0]))
    await process.kill()
    deadline = time.monotonic() + 5
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert process.status == -9


async def test_a_program_that_is_not_there_raises():
    for command in (["/no/such/program"], ["/etc/hostname"]):
        try:
            await Process.start(command, None, print, print, print)
        except OSError:
            continue
        raise AssertionError(command)
