"""Which candidate is judged how, and chosen, where there is a GPU.

The worker here is a program that speaks the protocol and says that it has one; what it measures is made up, so that the
choice can be tested where no GPU is.
"""

import json
import sys

import pytest

from kernel_lsp import kernel_file

from .conftest import over, target

WORKER = """
import json, sys

TIMES = json.loads(sys.argv[1])  # variant -> microseconds, or a status
log = open(sys.argv[2], "a")
DEVICE = {"name": "Imagined GPU", "kind": "cuda", "capability": "9.0"}

def timing(median):
    return {"median": median, "low": median, "high": median, "runs": 50}

def say(**message):
    print(json.dumps(message), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message["method"], message.get("id"), message.get("params", {})
    if method == "hello":
        say(id=number, result={"interpreter": "x", "python": "3", "devices": [DEVICE], "problems": []})
    elif method == "synthesize":
        specimen = {"class_name": "Tiny", "module": "module", "init_args": "", "inputs_from": "get_inputs()"}
        candidates = [{"source": f"VARIANT = {v!r}", "generator": "synthesizer", "variant": v} for v in TIMES]
        say(id=number, result={"specimen": specimen, "candidates": candidates})
    elif method == "judge":
        variant = params["source"].split('"')[1]
        print(variant, params["measure"], file=log, flush=True)
        time = TIMES[variant]
        if time == "dies":
            say(id=number, event="verdict", data={"status": "ok", "mode": "gpu"})
            sys.exit(9)
        if isinstance(time, str):
            verdict = {"status": time, "reason": "made up"}
            say(id=number, event="verdict", data=verdict)
            say(id=number, result={"verdict": verdict, "measurement": None})
            continue
        verdict = {"status": "ok", "mode": "gpu"}
        say(id=number, event="verdict", data=verdict)
        scalar = {"name": "", "shape": [], "dtype": "float32"}
        shape = {"inputs": [scalar], "eager": timing(100.0), "kernel": timing(time)}
        say(id=number, event="measurement", data={"shapes": [shape], "device": DEVICE})
        if params["measure"] == "full":
            shape["compiled"] = timing(60.0)
        say(id=number, result={"verdict": verdict, "measurement": {"shapes": [shape], "device": DEVICE}})
    elif method == "shutdown":
        break
"""


@pytest.fixture
def imagined(tmp_path, make_jobs):
    """Jobs whose worker finds these times; and what it was asked to judge."""

    def make(times: dict[str, float | str]):
        (tmp_path / "worker.py").write_text(WORKER)
        python = tmp_path / "python"
        log = tmp_path / "log"
        python.write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path}/worker.py '{json.dumps(times)}' {log}\n")
        python.chmod(0o755)
        return make_jobs(interpreter=str(python)), lambda: log.read_text().splitlines()

    return make


async def test_the_fastest_is_timed_again_with_torch_compile(imagined, module, memory):
    jobs, asked = imagined({"a": 50.0, "b": 40.0, "c": 45.0})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    assert asked() == ["a full", "b eager", "c eager", "b full"]
    chosen = job.report.candidates[job.report.chosen]
    assert chosen.candidate.variant == "b"
    assert chosen.measurement.shapes[0].compiled.median == 60.0
    assert sorted(judged.candidate.variant for judged in job.report.candidates) == ["a", "b", "c"]
    assert job.report.why == "The fastest of 3 correct candidates."
    header = kernel_file.read(kernel_file.kernel_path(path, "Tiny"))
    assert header.measurement == chosen.measurement
    assert header.verdict == chosen.verdict
    assert header.header["variant"] == "b"
    assert memory.states[0] == ("running", 0)  # the first verdict, long before the end


async def test_the_first_stands_without_a_second_look(imagined, module):
    jobs, asked = imagined({"a": 40.0, "b": 50.0})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert asked() == ["a full", "b eager"]
    assert job.report.candidates[job.report.chosen].candidate.variant == "a"


async def test_wrong_ones_are_passed_over_and_the_first_correct_one_takes_torch_compile(imagined, module):
    jobs, asked = imagined({"a": "wrong", "b": 40.0, "c": "compile-error"})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert asked() == ["a full", "b full", "c eager"]
    assert job.report.candidates[job.report.chosen].candidate.variant == "b"


async def test_none_correct_leaves_no_file(imagined, module):
    jobs, _ = imagined({"a": "wrong", "b": "crashed"})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert (job.state, job.report.chosen, job.report.file) == ("done", None, None)
    assert "None of 2 candidates is correct: made up" in job.report.why
    assert not kernel_file.kernel_path(path, "Tiny").exists()


async def test_a_worker_that_dies_after_the_verdict_leaves_the_verdict(imagined, module):
    jobs, _ = imagined({"a": "dies"})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    chosen = job.report.candidates[job.report.chosen]
    assert chosen.verdict.status == "ok"
    assert "exit status 9" in chosen.measurement.missing
    assert kernel_file.read(kernel_file.kernel_path(path, "Tiny")).verdict.status == "ok"
