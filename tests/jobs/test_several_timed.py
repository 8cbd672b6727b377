"""Several examples where there is a GPU: which kernels are joined, and what becomes of one that is wrong with another example.

The worker here is a program that speaks the protocol; which example a kernel runs for, and how well, is in the kernel's text.
"""

import sys

import pytest

from kernel_lsp import kernel_file, schema
from kernel_lsp.jobs import baselines, several_envelopes

from .conftest import TINY, over, target

WORKER = """
import json, re, sys

log = open(sys.argv[1], "a")
# Of each example the kernels that are proposed for it: "<examples>:<microseconds>[:wrong]"; null: it is in no envelope.
KINDS = json.loads(sys.argv[2])
DEVICE = {"name": "Imagined GPU", "kind": "cuda", "capability": "9.0", "driver": "1", "torch": "2", "triton": "3"}
NO_LAUNCH = "it launches no Triton kernel for the example inputs"
BODY = '''
from module import Tiny


def run_KEY(x):
    return "KIND"


class TinyTriton(Tiny):
    def forward(self, x):
        if not self._in_envelope(x):
            return super().forward(x)
        return run_KEY(x)

    def _in_envelope(self, x):
        return x == "KIND"
'''

def specimen(number):
    tensor = {"name": "x", "shape": [8, number + 1], "dtype": "float32", "dynamic": ["n", None]}
    return {"class_name": "Tiny", "module": "module", "init_args": "", "inputs_from": "get_inputs()", "inputs": [tensor],
            "examples": len(KINDS)}

def timing(median):
    return {"median": median, "low": median, "high": median, "runs": 50}

def found(source, number):
    kinds = re.findall(r'x == "(.*?)"', source) if KINDS[number] is not None else []
    for envelope, kind in enumerate(kinds, 1):
        examples, time, *wrong = kind.split(":")
        if str(number) in examples:
            if wrong == ["late"] and len(kinds) > 1:
                return {"status": "timeout", "reason": "the time was over"}, None
            if wrong == [str(number)]:
                return {"status": "wrong", "reason": f"wrong with {number}"}, None
            shape = {"inputs": specimen(number)["inputs"], "eager": timing(100.0), "kernel": timing(float(time))}
            verdict = {"status": "ok", "mode": "gpu", "error": 1e-7 * (number + 1)}
            verdict["envelope"] = envelope if len(kinds) > 1 else 0
            return verdict, {"shapes": [shape], "device": DEVICE}
    return {"status": "cheating", "reason": NO_LAUNCH}, None

def say(**message):
    print(json.dumps(message), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message["method"], message.get("id"), message.get("params", {})
    example = params.get("example")
    if method == "hello":
        say(id=number, result={"interpreter": "x", "python": "3", "devices": [DEVICE], "problems": []})
    elif method == "synthesize":
        texts = [BODY.replace("KIND", kind).replace("KEY", re.sub(r"\\W", "_", kind)) for kind in KINDS[example]]
        candidates = [{"source": text, "generator": "synthesizer"} for text in texts]
        say(id=number, result={"specimen": specimen(example), "candidates": candidates})
    elif method == "tune":
        print("tune", example, file=log, flush=True)
        all_found = [found(source, example) for source in params["sources"]]
        times = [measured["shapes"][0]["kernel"]["median"] for _, measured in all_found]
        best = times.index(min(times))
        answer = {"verdicts": {str(i): all_found[i][0] for i in {0, best}}, "fastest": best}
        answer |= {"tried": [{"timing": timing(time)} for time in times], "measurement": all_found[best][1]}
        say(id=number, result={**answer, "specimen": specimen(example)})
    elif method == "validate":
        print("validate", example, file=log, flush=True)
        verdict, measured = found(params["source"], example)
        say(id=number, result={"verdict": verdict, "measurement": measured, "specimen": specimen(example)})
    elif method == "baseline":
        modes = {mode: {"eager": timing(100.0), "compiled": timing(90.0)} for mode in params["modes"]}
        say(id=number, result={"modes": modes, "missing": {}})
    elif method == "shutdown":
        break
"""


@pytest.fixture
def generated(tmp_path, make_jobs, module, monkeypatch):
    """Generate for a class; ``kinds``: of each example the kernels that are proposed. The job, and what the worker was asked."""
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    baselines._store.cache_clear()

    async def generate(kinds: str, what: str = "generate", source: str = TINY):
        (tmp_path / "worker.py").write_text(WORKER)
        python, log = tmp_path / "python", tmp_path / "log"
        log.write_text("")
        python.write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path}/worker.py {log} '{kinds}'\n")
        python.chmod(0o755)
        path = module(source)
        jobs = make_jobs(interpreter=str(python), generators=["synthesizer"])
        job = await over(jobs.submit(what, target(path, "Tiny"), path))
        assert job.state == "done", job.error
        return job, log.read_text().splitlines()

    yield generate
    baselines._store.cache_clear()


def chosen(job) -> schema.Validated:
    return job.report.candidates[job.report.chosen]


async def test_the_fastest_of_each_example_are_joined_and_validated_anew(generated):
    job, asked = await generated('[["0:50", "0:40"], ["1:30", "1:20"]]')
    assert asked == ["tune 0", "validate 1", "tune 1", "validate 0", "validate 1"]
    written = kernel_file.read(kernel_file.find_kernel(job.path, "Tiny"))
    assert several_envelopes.envelopes(written.body) == 2
    assert 'x == "0:40"' in written.body and 'x == "1:20"' in written.body
    first, second = chosen(job).verdict.examples
    assert (first.kernel.median, second.kernel.median, second.inputs) == (40.0, 20.0, "x: float32[8, 2]")
    assert chosen(job).verdict.error == second.error and chosen(job).verdict.error_check == "example 2"
    assert chosen(job).measurement.shapes[0].kernel.median == 40.0
    assert chosen(job).measurement.shapes[0].compiled.median == 90.0
    assert written.header["envelope"]["further"] == ["x: float32[n, 2]"]


async def test_an_example_in_the_first_envelope_needs_no_kernel_of_its_own(generated):
    job, asked = await generated('[["01:50"], ["1:1"]]')
    assert asked == ["validate 0", "validate 1"]
    assert [one.status for one in chosen(job).verdict.examples] == ["ok", "ok"] and not job.report.further


async def test_a_kernel_that_is_wrong_with_another_example_is_not_written(generated):
    job, _ = await generated('[["01:50", "01:40:1"], []]')
    assert 'x == "01:50"' in chosen(job).candidate.source
    assert [one.status for one in chosen(job).verdict.examples] == ["ok", "ok"]
    wrong = next(one.verdict for one in job.report.candidates if "01:40:1" in one.candidate.source)
    assert (wrong.status, wrong.reason) == ("wrong", "example 2 (x: float32[8, 2]): wrong with 1")

    job, _ = await generated('[["01:40:1"], []]')
    assert job.report.chosen is None and job.report.file is None
    assert "wrong with 1" in job.report.why


async def test_where_the_time_is_over_for_the_joined_file_it_is_not_called_incorrect(generated):
    job, _ = await generated('[["0:50:late"], ["1:20"]]')
    assert [one.status for one in chosen(job).verdict.examples] == ["ok", "eager"]
    assert "The kernels of several examples are not validated in one file: the time was over" in job.report.warnings


async def test_an_example_without_a_kernel_stays_with_eager(generated):
    job, asked = await generated('[["0:50"], ["1:20:1"], ["2:10"]]')
    assert [one.status for one in chosen(job).verdict.examples] == ["ok", "eager", "ok"]
    assert "Example 2 runs eagerly: wrong with 1" in job.report.warnings
    assert asked.count("validate 2") == 3  # whether an envelope holds for it, its own kernel, and the joined ones
    text = kernel_file.find_kernel(job.path, "Tiny").read_text()
    assert "1:20" not in text and 'x == "2:10"' in text


async def test_an_envelope_that_no_example_is_in_any_more_is_told_of(generated):
    await generated('[["0:50"], ["1:20"]]')
    job, asked = await generated('[["0:50"]]', "validate")
    assert asked == ["validate 0"] and chosen(job).verdict.status == "ok"
    assert "1 of its 2 envelopes, which no example is in" in chosen(job).verdict.limits

    # Two examples with other sizes in the first envelope do not stand for the second.
    job, _ = await generated('[["01:50"], [], ["2:20"]]')
    assert not any("no example is in" in limit for limit in chosen(job).verdict.limits)
    written = kernel_file.read(kernel_file.find_kernel(job.path, "Tiny"))
    assert written.header["envelope"]["further"] == ["x: float32[n, 3]"]
    job, _ = await generated('[["01:50"], []]', "validate")
    assert "1 of its 2 envelopes, which no example is in" in chosen(job).verdict.limits

    await generated('[["0:50"], ["1:20"]]')
    job, _ = await generated("[[], null]", "validate")
    assert chosen(job).verdict.status == "ok" and chosen(job).verdict.examples[1].status == "eager"
    # After a change of the class the same means that its kernels do not fit any more.
    job, _ = await generated("[[], null]", "validate", TINY.replace("x * 2 + 1", "x * 3 + 1"))
    assert job.report.candidates[0].verdict.status == "outdated" and job.report.chosen is None
