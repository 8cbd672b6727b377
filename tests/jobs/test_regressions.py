"""When a kernel is measured beside the one before it, and what of the result is a regression."""

import os
import subprocess
import sys

import pytest

from kernel_lsp import analysis, kernel_file, schema, speedup
from kernel_lsp.checking.findings import checked_of
from kernel_lsp.jobs import Job, pausing, regressions
from kernel_lsp.jobs.regressions import is_called_for
from kernel_lsp.jobs.run import Run
from kernel_lsp.settings import Settings
from kernel_lsp.store import validations
from kernel_lsp.store.validations import Known, Validation
from tests.store import made
from tests.store.made import found

from .conftest import over, target


def compared(low: float, high: float, now: float = 54.0, before: float = 50.0) -> schema.SpeedComparison:
    def timing(median: float) -> schema.Timing:
        return schema.Timing(median, median - 1, median + 1, 200)

    ratio = schema.Ratio((low + high) / 2, low, high, 200)
    about = {"body": "sha256:b", "reached_at": "2026-01-02T03:04:05+00:00", "changed": "kernel, torch 2.11.0 → 2.13.0"}
    return schema.SpeedComparison(timing(now), timing(before), timing(100.0), ratio, **about)


@pytest.mark.parametrize(
    ("comparison", "percent", "regressed"),
    [
        (compared(1.07, 1.09), 5.0, True),
        (compared(1.04, 1.09), 5.0, False),  # it may be 4 %
        (compared(0.98, 1.02), 5.0, False),
        (compared(0.5, 0.6), 5.0, False),  # faster
        (compared(1.07, 1.09), 10.0, False),
        (compared(1.001, 1.002), 0.0, True),
        (schema.SpeedComparison(missing="it computes something else"), 5.0, False),
        (None, 5.0, False),
    ],
)
def test_a_regression_is_an_interval_beyond_the_threshold(comparison, percent, regressed):
    assert speedup.is_regression(comparison, percent) is regressed
    assert bool(speedup.regression(schema.Measurement(comparison=comparison), percent)) is regressed


def test_a_regression_in_words():
    assert speedup.regression(schema.Measurement(comparison=compared(1.07, 1.09)), 5.0) == (
        "Slower than the kernel of 2026-01-02: 54.0 µs instead of 50.0 µs. Timed in turn, it takes 1.08× as long "
        "(99 % sure: 1.07× to 1.09×, 200 rounds). Changed: kernel, torch 2.11.0 → 2.13.0."
    )


def known(kernel: float = 54.0, comparison: schema.SpeedComparison | None = None) -> Validation:
    validation = found(kernel=kernel)
    assert validation.measurement is not None
    validation.measurement.comparison = comparison
    return validation


@pytest.mark.parametrize(
    ("took", "before", "known", "called_for"),
    [
        (40.0, 50.0, None, True),  # a new kernel, whatever the times on record are
        (40.0, 50.0, Validation(schema.Verdict("ok"), None, None, ""), True),  # never timed
        (51.0, 50.0, known(), False),
        (53.0, 50.0, known(), True),
        (51.0, 50.0, known(comparison=compared(1.07, 1.09)), True),  # it had regressed, and may have still
        (51.0, 50.0, known(comparison=compared(0.99, 1.01)), False),
    ],
)
def test_when_both_are_measured(took, before, known, called_for):
    assert is_called_for(took, before, known, 5.0) is called_for


class Answering:
    """In the worker's place, which has no GPU here: it gives a comparison that was recorded."""

    def __init__(self, comparison: schema.SpeedComparison) -> None:
        self.comparison = comparison
        self.asked: list[tuple[str, list[str]]] = []

    async def request(self, method, params, **_):
        self.asked.append((method, params["sources"]))
        return {"comparison": schema.to_json(self.comparison)}


@pytest.fixture
def run_for(module, memory, monkeypatch, tmp_path):
    """A job's run on a class whose store holds a kernel of 50 µs."""
    store = tmp_path / "store.sqlite"
    monkeypatch.setenv("KERNEL_LSP_STORE", str(store))

    def run_for(worker: Answering, **settings) -> Run:
        path = module()
        fingerprint = analysis.fingerprint(path.read_text(), path, "Tiny")
        made.keep(
            store, found(kernel=50.0), path, tmp_path, source="# before\n", fingerprint=fingerprint, torch="2.9.0"
        )
        about = schema.Target(path.as_uri(), "Tiny", fingerprint=fingerprint)
        job = Job("validate-1", "validate", about, path)
        run = Run(job, Settings(root=tmp_path, **settings), worker, memory, schema.Report(about))
        run.first_device = run.report.device = made.DEVICE
        return run

    return run_for


def timed(kernel: float = 54.0, status: str = "ok") -> schema.Validated:
    validation = found(kernel=kernel, status=status)
    return schema.Validated(schema.Candidate("# now\n", "synthesizer"), validation.verdict, validation.measurement)


async def test_a_new_kernel_is_measured_beside_the_fastest_before_it(run_for):
    worker = Answering(compared(1.07, 1.09))
    worker.comparison.changed = worker.comparison.body = worker.comparison.reached_at = ""
    validated = timed()
    await regressions.compare(run_for(worker), validated, None)
    assert worker.asked == [("compare", ["# now\n", "# before\n"])]
    comparison = validated.measurement.comparison
    assert (comparison.body, comparison.changed) == (
        kernel_file.body_hash("# before\n"),
        "kernel, torch 2.9.0 → 2.11.0",
    )
    assert speedup.regression(validated.measurement, 5.0).startswith("Slower than the kernel of 2026-01-01: 54.0 µs")


@pytest.mark.parametrize(
    ("validated", "settings", "missing"),
    [
        (timed(status="wrong"), {}, None),
        (
            schema.Validated(schema.Candidate("", ""), schema.Verdict("ok"), schema.Measurement(missing="no GPU")),
            {},
            None,
        ),
        (timed(), {"seconds": 1.0}, "the time was over"),
    ],
)
async def test_what_is_not_measured(run_for, validated, settings, missing):
    worker = Answering(compared(1.07, 1.09))
    await regressions.compare(run_for(worker, **settings), validated, None)
    assert worker.asked == []
    comparison = validated.measurement.comparison
    assert (comparison is None) == (missing is None)
    assert missing is None or missing in comparison.missing


async def test_without_a_store_it_is_said_that_nothing_is_kept(run_for, monkeypatch):
    run, validated = run_for(Answering(compared(1.07, 1.09))), timed()
    monkeypatch.setenv("KERNEL_LSP_STORE", "")
    await regressions.compare(run, validated, None)
    assert validated.measurement.comparison == schema.SpeedComparison(missing=regressions.NO_STORE)
    report = schema.Report(run.job.target, candidates=[validated], chosen=0)
    assert checked_of(run.job.path, report, None, []).not_measured == regressions.NO_STORE


async def test_a_damaged_store_is_a_warning(run_for, tmp_path):
    run, validated = run_for(Answering(compared(1.07, 1.09))), timed()
    (tmp_path / "store.sqlite").write_bytes(b"no database" * 1000)
    await regressions.compare(run, validated, None)
    assert run.report.warnings and validated.measurement.comparison.missing


def test_a_comparison_is_kept_with_the_verdict(tmp_path):
    made.keep(tmp_path / "store.sqlite", known(comparison=compared(1.07, 1.09)), tmp_path / "norm.py", tmp_path)
    again = validations.find(made.KEY, tmp_path / "store.sqlite")
    assert again.measurement.comparison == compared(1.07, 1.09)


def test_what_other_versions_found_is_said_with_their_times():
    from kernel_lsp.jobs.validate import _before

    parsed = kernel_file.parse(kernel_file.assemble({"source": "a.py::A"}, ""))
    changed = "with torch 2.11.0 before; now 2.13.0"
    assert _before(parsed, Known(None, found(kernel=50.0), changed), "A") == (
        "was validated on this machine on 2026-01-01 with torch 2.11.0 before; now 2.13.0 (2.00× eager, 50.0 µs then)"
    )
    assert _before(parsed, Known(found(kernel=50.0)), "A").endswith("on 2026-01-01 (2.00× eager, 50.0 µs)")
    assert _before(parsed, Known(), "A") == "holds no verdict; not validated on this machine before"
    assert _before(parsed, Known(earlier=found(kernel=50.0)), "A") == (
        "was validated on this machine on 2026-01-01 for an earlier text of A, or of something it uses (2.00× eager, 50.0 µs then)"
    )


@pytest.mark.slow
async def test_under_the_interpreter_nothing_is_compared_and_a_kernel_from_before_is_restored(
    make_jobs, module, tmp_path, monkeypatch
):
    store = tmp_path / "store.sqlite"
    monkeypatch.setenv("KERNEL_LSP_STORE", str(store))
    jobs, path = make_jobs(device="interpreter", generators=["synthesizer"]), module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    kernel = kernel_file.find_kernel(path, "Tiny")
    before = kernel_file.read(kernel)

    other = before.body + "\n# another\n"
    header = before.header | {"body": kernel_file.body_hash(other)}
    kernel.write_text(kernel_file.assemble(header, other))
    job = await over(jobs.submit("validate", target(path, "Tiny"), path))
    assert job.report.chosen == 0 and job.report.regression == ""
    assert job.report.candidates[0].measurement.comparison is None

    # An edited file stays as it is, unless overwriting is asked for.
    kernel.write_text(kernel.read_text() + "# by hand\n")
    asked = {"body": before.actual_body}
    job = await over(jobs.submit("restore", target(path, "Tiny"), path, **asked))
    assert type(job.error).__name__ == "KernelFileEdited" and kernel.read_text().endswith("# by hand\n")
    job = await over(jobs.submit("restore", target(path, "Tiny"), path, review=True, **asked))
    assert job.state == "done" and kernel.read_text().endswith("# by hand\n")
    assert kernel_file.parse(job.proposal).body == before.body
    job = await over(jobs.submit("restore", target(path, "Tiny"), path, overwrite=True, **asked))
    assert job.state == "done", job.error
    again = kernel_file.read(kernel)
    assert again.body == before.body and not again.edited
    assert {**again.header, "validated": 0, "measured": 0} == {**before.header, "validated": 0, "measured": 0}

    job = await over(jobs.submit("restore", target(path, "Tiny"), path, body="sha256:none"))
    assert type(job.error).__name__ == "FasterKernelMissing"


async def test_times_beside_other_work_tell_of_no_regression(run_for):
    """Neither where the kernel itself was timed so, nor where the comparison was."""
    worker, validated = Answering(compared(1.07, 1.09)), timed()
    validated.measurement.beside = "87 % busy by pid 4711 (python)"
    run = run_for(worker)
    await regressions.compare(run, validated, None)
    assert worker.asked == []
    said = "timed beside other work: 87 % busy by pid 4711 (python)"
    assert validated.measurement.comparison.missing == said
    report = schema.Report(run.job.target, candidates=[validated], chosen=0)
    assert checked_of(run.job.path, report, None, []).not_measured == said

    worker.comparison.beside, validated.measurement.beside = validated.measurement.beside, ""
    await regressions.compare(run, validated, None)
    comparison = validated.measurement.comparison
    assert len(worker.asked) == 1 and comparison.ratio is not None and comparison.missing == said
    assert speedup.regression(validated.measurement, 5.0) == ""


@pytest.mark.parametrize(
    ("settings", "waits"),
    [({}, True), ({"pause_while_gpu_busy": False}, False), ({"device": "interpreter"}, False)],
)
async def test_background_work_waits_while_others_keep_the_gpu_busy(gpu_driver, settings, waits):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as ours:
        gpu_driver.write_text(f"{os.getppid()} 87\n{ours.pid} 99\n")
        why = await pausing.why(Settings(**settings))
        ours.communicate(b"\n")
    assert why.startswith(f"the GPU is 87 % busy by pid {os.getppid()}") if waits else why == ""
    gpu_driver.write_text(f"{os.getppid()} 3\n")
    assert await pausing.why(Settings(**settings)) == ""
