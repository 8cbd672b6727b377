"""Which candidate is validated how, and chosen, where there is a GPU.

The worker here is a program that speaks the protocol and says that it has one; what it measures is made up, so that the
choice can be tested where no GPU is.
"""

import json
import sys

import pytest

from kernel_lsp import analysis, class_schema, kernel_file, schema
from kernel_lsp.commands.report_lines import missing
from kernel_lsp.commands.run_jobs import Task
from kernel_lsp.errors import surface
from kernel_lsp.jobs import baselines
from kernel_lsp.jobs.ranking import fastest
from kernel_lsp.recording import files
from tests.recording.made import run_of, shape, tensor
from tests.store import made

from .conftest import over, target

WORKER = """
import json, sys

TIMES = json.loads(sys.argv[1])  # variant -> microseconds, or a status; "eager" -> eager's; "before" -> not proposed
EAGER = TIMES.pop("eager", 100.0)
log = open(sys.argv[2], "a")
DEVICE = {"name": "Imagined GPU", "kind": "cuda", "capability": "9.0", "driver": "1", "torch": "2", "triton": "3"}

def timing(median):
    return {"median": median, "low": median, "high": median, "runs": 50}

def measurement(time):
    scalar = {"name": "", "shape": [], "dtype": "float32"}
    shape = {"inputs": [scalar], "eager": timing(EAGER), "kernel": timing(time)}
    return {"shapes": [shape], "device": {**DEVICE, "driver": ""}}

def say(**message):
    print(json.dumps(message), flush=True)

def variant_of(source):
    return source.split('"')[1]

for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message["method"], message.get("id"), message.get("params", {})
    if method == "hello":
        say(id=number, result={"interpreter": "x", "python": "3", "devices": [DEVICE], "problems": []})
    elif method == "synthesize":
        specimen = {"class_name": "Tiny", "module": "module", "init_args": "", "inputs_from": "get_inputs()"}
        candidates = [
            {"source": f"VARIANT = {v!r}", "generator": "synthesizer", "variant": v, "arithmetic": v.partition(" ")[2],
             "faults": [{"code": "LoweringFailed", "message": "failed to lower aten.x"}] if v.startswith("faulty") else []}
            for v in TIMES if v != "before"
        ]
        say(id=number, result={"specimen": specimen, "candidates": candidates})
    elif method == "tune":
        variants = [variant_of(source) for source in params["sources"]]
        print("tune", *variants, file=log, flush=True)
        if params["recorded"]:
            print("recorded", [one["calls"] for one in params["recorded"]["shapes"]], file=log, flush=True)
        first = TIMES[variants[0]]
        right = {"status": "ok", "mode": "gpu"}
        verdict = {"status": first, "reason": "made up"} if isinstance(first, str) and first not in ("dies", "late") else right
        say(id=number, event="verdict", data={"index": 0, "verdict": verdict})
        if first == "dies":
            sys.exit(9)
        if first == "late":
            late = "No time for it. Raise kernelLsp.seconds."
            say(id=number, error={"code": "WorkerTimedOut", "message": late})
            continue
        answer = {"verdicts": {"0": verdict}, "tried": [], "fastest": 0, "measurement": None}
        if verdict is right:
            times = [TIMES[v] for v in variants]
            fastest = min((t, i) for i, t in enumerate(times) if not isinstance(t, str))[1]
            answer["tried"] = [{"reason": t} if isinstance(t, str) else {"timing": timing(t)} for t in times]
            answer["verdicts"][str(fastest)] = right
            answer |= {"fastest": fastest, "measurement": measurement(times[fastest]), "memory": {"device": 7}}
        say(id=number, result=answer)
    elif method == "validate":
        variant = variant_of(params["source"])
        print("validate", variant, params["measure"], file=log, flush=True)
        time = TIMES[variant]
        if time == "dies":
            sys.exit(9)
        verdict = {"status": time, "reason": "made up"} if isinstance(time, str) else {"status": "ok", "mode": "gpu"}
        say(id=number, event="verdict", data=verdict)
        say(id=number, result={"verdict": verdict, "measurement": None if isinstance(time, str) else measurement(time)})
    elif method == "baseline":
        print("baseline", *params["modes"], file=log, flush=True)
        modes = {mode: {"eager": timing(EAGER), "compiled": timing(60.0)} for mode in params["modes"]}
        say(id=number, result={"modes": modes, "missing": {}})
    elif method == "shutdown":
        break
"""


@pytest.fixture
def imagined(tmp_path, make_jobs, monkeypatch):
    """Jobs whose worker finds these times; and what it was asked to do. What is kept is kept for the test alone."""
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    baselines._store.cache_clear()

    def make(times: dict[str, float | str], **settings):
        (tmp_path / "worker.py").write_text(WORKER)
        python = tmp_path / "python"
        log = tmp_path / "log"
        log.write_text("")
        python.write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path}/worker.py '{json.dumps(times)}' {log}\n")
        python.chmod(0o755)
        return make_jobs(interpreter=str(python), **settings), lambda: log.read_text().splitlines()

    yield make
    baselines._store.cache_clear()


async def test_the_fastest_schedule_is_chosen_and_torch_compile_timed_once(imagined, module, memory):
    jobs, asked = imagined({"a": 50.0, "b": 40.0, "c": "it spills"})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    assert asked() == ["tune a b c", "baseline default"]
    chosen = job.report.candidates[job.report.chosen]
    assert chosen.candidate.variant == "b"
    assert chosen.measurement.shapes[0].compiled.median == 60.0 and chosen.measurement.shapes[0].kept == {}
    assert sorted(validated.candidate.variant for validated in job.report.candidates) == ["a", "b"]
    assert [(one.variant, one.timing and one.timing.median, one.reason) for one in job.report.tried] == [
        ("a", 50.0, ""),
        ("b", 40.0, ""),
        ("c", None, "it spills"),
    ]
    assert job.report.why == "The fastest of 2 schedules." and job.report.memory == {"device": 7}
    assert job.report.device.driver == "1"
    header = kernel_file.read(kernel_file.find_kernel(path, "Tiny"))
    times = header.claim.measurement.shapes[0]
    assert (times.kernel, times.compiled) == tuple(
        getattr(chosen.measurement.shapes[0], name) for name in ("kernel", "compiled")
    )
    assert header.claim.verdict == chosen.verdict
    assert header.header["variant"] == "b"
    assert memory.states[0] == ("running", 0)  # the first verdict, long before the end


async def test_the_first_stands_where_no_other_is_faster(imagined, module):
    jobs, asked = imagined({"a": 40.0, "b": 50.0})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert asked() == ["tune a b", "baseline default"]
    assert job.report.candidates[job.report.chosen].candidate.variant == "a" and len(job.report.candidates) == 1


async def test_a_baseline_is_kept_and_used_while_eager_agrees(imagined, module):
    path = module()
    for eager, wanted in ((100.0, ["baseline default"]), (104.0, []), (106.0, ["baseline default"]), (106.0, [])):
        jobs, asked = imagined({"a": 40.0, "b": 50.0, "eager": eager})
        baselines._store.cache_clear()  # as another run of the program
        job = await over(jobs.submit("generate", target(path, "Tiny"), path))
        shape = job.report.candidates[job.report.chosen].measurement.shapes[0]
        assert asked() == ["tune a b", *wanted], eager
        assert shape.compiled.median == 60.0
        assert ("default" in shape.kept) == (not wanted)


async def test_further_modes_are_measured_and_none_may_be_wanted(imagined, module):
    path = module()
    jobs, asked = imagined({"a": 40.0, "b": 50.0}, baselines=["default", "max-autotune"])
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    shape = job.report.candidates[job.report.chosen].measurement.shapes[0]
    assert asked()[1:] == ["baseline default max-autotune"] and shape.compiled_modes["max-autotune"].median == 60.0
    jobs, asked = imagined({"a": 40.0, "b": 50.0}, baselines=[])
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.error is None, job.error
    measurement = job.report.candidates[job.report.chosen].measurement
    assert asked() == ["tune a b"] and measurement.compiled_missing == "not asked for"


async def test_what_may_be_the_schedules_fault_is_tried_with_the_next(imagined, module):
    jobs, asked = imagined({"a": "compile-error", "b": 40.0, "c": 30.0})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert asked() == ["tune a b c", "validate b eager", "baseline default"]
    assert job.report.candidates[job.report.chosen].candidate.variant == "b"


async def test_wrong_in_one_schedule_is_wrong_in_all_but_in_another_arithmetic(imagined, module):
    jobs, asked = imagined({"a": "wrong", "b": 40.0, "c bf16x6": 50.0})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert asked() == ["tune a b c bf16x6", "validate c bf16x6 eager", "baseline default"]
    assert job.report.candidates[job.report.chosen].candidate.variant == "c bf16x6"


async def test_where_the_first_arithmetic_is_wrong_the_others_are_timed_beside_each_other(imagined, module):
    jobs, asked = imagined({"a": "wrong", "b left": 60.0, "c": 40.0, "d planes": 30.0, "e planes": 20.0})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert asked()[:2] == ["tune a b left c d planes e planes", "tune b left d planes e planes"]
    assert job.report.candidates[job.report.chosen].candidate.variant == "e planes"


async def test_none_correct_leaves_no_file(imagined, module):
    jobs, _ = imagined({"a": "crashed", "b": "crashed"})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert (job.state, job.report.chosen, job.report.file) == ("done", None, None)
    assert "None of 2 candidates is correct: made up" in job.report.why
    assert not kernel_file.find_kernel(path, "Tiny").exists()


async def test_a_worker_that_dies_after_the_verdict_leaves_the_verdict(imagined, module):
    jobs, _ = imagined({"a": "dies", "b": 40.0})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    chosen = job.report.candidates[job.report.chosen]
    assert chosen.verdict.status == "ok"
    assert "exit status 9" in chosen.measurement.missing
    assert kernel_file.read(kernel_file.find_kernel(path, "Tiny")).claim.verdict.status == "ok"


async def test_why_nothing_was_measured_is_kept_in_words_for_any_surface(imagined, module):
    """A command names its option where it shows them; an editor, which may show the same report, its setting."""
    jobs, _ = imagined({"a": "late", "b": 40.0})
    path = module()
    with surface.command_line({"seconds"}):
        job = await over(jobs.submit("generate", target(path, "Tiny"), path))
        measurement = job.report.candidates[job.report.chosen].measurement
        said = "Raise kernelLsp.seconds."
        assert measurement.missing.endswith(said) and measurement.compiled_missing.endswith(said)
        task = Task("module.py::Tiny", None, job)
        assert missing([task]) == [measurement.missing.replace("kernelLsp.seconds", "--seconds")]


async def test_the_worker_is_told_of_recorded_shapes_but_in_an_evaluation(imagined, module, tmp_path):
    jobs, asked = imagined({"a": 50.0, "b": 40.0})
    path = module()
    shapes = [shape(tensor("float32[2]"), calls=7), shape(tensor("float32[3]"), calls=9)]
    files.keep(run_of(path.resolve(), shapes, "Tiny"), tmp_path / "recordings")
    await over(jobs.submit("generate", target(path, "Tiny"), path, write=False))
    assert asked()[:2] == ["tune a b", "recorded [9, 7]"]
    await over(jobs.submit("generate", target(path, "Tiny"), path, write=False, recorded=False))
    assert "recorded" not in " ".join(asked()[2:]) and "tune a b" in asked()[2:]


def validated(status: str = "ok", **times: tuple[int | None, float, float]) -> schema.Validated:
    """A candidate with ``(calls, eager, kernel)`` at each shape: ``n8=(100, 20.0, 10.0)``; the first is the example's."""
    shapes = [
        schema.ShapeMeasurement(
            [class_schema.TensorSpec("x", [int(name[1:])], "float32")],
            eager=schema.Timing(eager, eager, eager, 50),
            kernel=schema.Timing(kernel, kernel, kernel, 50),
            calls=calls,
        )
        for name, (calls, eager, kernel) in times.items()
    ]
    return schema.Validated(schema.Candidate("", "g"), schema.Verdict(status), schema.Measurement(shapes))


def test_a_kernel_for_more_of_the_examples_comes_before_a_faster_one():
    fast, both = validated(n8=(None, 20.0, 5.0)), validated(n8=(None, 20.0, 6.0))
    fast.verdict.examples = [schema.OfExample("x: float32[8]"), schema.OfExample("x: float16[8]", "eager")]
    both.verdict.examples = [schema.OfExample("x: float32[8]"), schema.OfExample("x: float16[8]", "slower")]
    assert fastest([fast, both]) == 1 and fastest([fast]) == 0


def test_the_fastest_over_the_recorded_shapes_is_chosen_not_the_one_at_the_example():
    at_the_example = validated(n8=(None, 20.0, 5.0), n2=(100, 4.0, 4.0), n4=(10, 9.0, 9.0))
    over_the_mix = validated(n8=(None, 20.0, 15.0), n2=(100, 4.0, 2.0), n4=(10, 9.0, 8.0))
    assert fastest([at_the_example, over_the_mix]) == 1
    slower = validated("slower", n8=(None, 20.0, 1.0), n2=(100, 4.0, 9.0), n4=(10, 9.0, 9.0))
    assert fastest([slower, at_the_example, over_the_mix]) == 2


def test_at_a_shape_that_a_candidate_leaves_to_eager_it_counts_as_eager():
    everywhere = validated(n8=(None, 20.0, 10.0), n2=(100, 4.0, 3.0), n4=(10, 9.0, 5.0))
    narrow = validated(n8=(None, 20.0, 10.0), n4=(10, 9.0, 4.0))  # 100 × 4 + 10 × 4 against 100 × 3 + 10 × 5
    assert fastest([narrow, everywhere]) == 1
    assert fastest([validated(n8=(None, 20.0, 10.0), n2=(100, 4.0, 2.0)), everywhere]) == 0  # 200 + 90 against 350


def test_calls_that_differ_in_a_flag_alone_are_told_apart():
    def with_flag(off: float, on: float) -> schema.Validated:
        entry = validated(n8=(None, 20.0, 10.0), n2=(100, 4.0, off), n4=(10, 9.0, on))
        _, first, second = entry.measurement.shapes
        second.inputs = first.inputs
        first.text, second.text = "float32[2], causal=False", "float32[2], causal=True"
        return entry

    assert fastest([with_flag(3.0, 2.0), with_flag(2.0, 8.0)]) == 1  # 300 + 20 against 200 + 80
    assert fastest([with_flag(2.0, 8.0), with_flag(2.0, 3.0)]) == 1
    alone = validated(n8=(None, 20.0, 10.0), n2=(100, 4.0, 2.5))  # leaves the other to eager: 250 + 90
    alone.measurement.shapes[1].text = "float32[2], causal=False"
    assert fastest([alone, with_flag(3.0, 2.0)]) == 1


@pytest.fixture
def kernel_of_before(tmp_path):
    """Keep a kernel of the class that the store says took so many microseconds; no generator proposes it."""

    def keep(path, microseconds):
        fingerprint, source = analysis.fingerprint(path.read_text(), path, "Tiny"), 'VARIANT = "before"\n'
        found = made.found(kernel=microseconds)
        found.measurement.shapes[0].inputs = [class_schema.TensorSpec("", [], "float32")]
        versions = {"device": "Imagined GPU", "driver": "1", "torch": "2", "triton": "3"}
        made.keep(tmp_path / "store.sqlite", found, path, tmp_path, source, "Tiny", fingerprint=fingerprint, **versions)
        return kernel_file.body_hash(source)

    return keep


@pytest.mark.parametrize(
    ("then", "now", "chosen"),
    [(30.0, 31.0, "before"), (30.0, 45.0, "a"), (30.0, "wrong", "a"), (39.0, 31.0, "a"), (50.0, 31.0, "a")],
)
async def test_the_faster_kernel_of_before_is_validated_again_and_its_times_of_now_decide(
    imagined, module, kernel_of_before, then, now, chosen
):
    path = module()
    body = kernel_of_before(path, then)
    jobs, asked = imagined({"a": 40.0, "b": 50.0, "before": now})
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    # 39 µs are less than 5 % better than 40: no reason to validate it again.
    again = ["validate before eager"] if then == 30.0 else []
    assert asked() == ["tune a b", *again, "baseline default"]
    kernel = kernel_file.read(kernel_file.find_kernel(path, "Tiny"))
    assert f'VARIANT = "{chosen}"' in kernel.body
    if chosen == "before":
        assert (kernel.generator, kernel.actual_body) == ("recall", body)
        assert kernel.header["note"] == "3 of 3 ops; of 2026-01-01, 30.0 µs then"
    if now in ("wrong", 45.0):  # known from now on: it is not validated a second time
        jobs, asked = imagined({"a": 40.0, "b": 50.0, "before": now})
        await over(jobs.submit("generate", target(path, "Tiny"), path))
        assert asked()[0] == "tune a b" and "validate before eager" not in asked()


async def test_an_error_at_the_kernel_of_before_leaves_the_kernels_of_now(imagined, module, kernel_of_before):
    path = module()
    kernel_of_before(path, 30.0)
    jobs, asked = imagined({"a": 40.0, "b": 50.0, "before": "dies"})
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    assert asked() == ["tune a b", "validate before eager", "baseline default"]
    assert job.report.candidates[job.report.chosen].candidate.variant == "a"
    (warning,) = job.report.warnings
    assert warning.startswith("The faster kernel of 2026-01-01 could not be validated again: ")
    assert "exit status 9" in warning


async def test_where_recall_is_not_among_the_generators_nothing_of_before_is_taken(imagined, module, kernel_of_before):
    path = module()
    kernel_of_before(path, 30.0)
    jobs, asked = imagined({"a": 40.0, "b": 50.0, "before": 31.0}, generators=["synthesizer"])
    await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert asked()[0] == "tune a b" and "validate before eager" not in asked()


async def test_what_failed_to_lower_is_a_warning_once(imagined, module):
    jobs, _asked = imagined({"faulty_a": 40.0, "faulty_b": 50.0})
    path = module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done" and job.report.warnings == ["failed to lower aten.x"]
    assert job.report.candidates[0].candidate.faults[0]["code"] == "LoweringFailed"
