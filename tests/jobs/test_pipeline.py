"""Generation and validation on a real worker: what is reported, what is written, and when nothing is."""

import ast

import pytest

from kernel_lsp import class_schema, errors, kernel_file, schema, why_eager
from kernel_lsp.jobs.client import Worker
from kernel_lsp.jobs.run import Run
from kernel_lsp.store import validations
from kernel_lsp.store.validations import Validation

from .conftest import TINY, over, target

GIVEN = """
import torch

class Given(torch.nn.Module):
    def forward(self, x):
        return x - 1
"""


@pytest.fixture
def kernel_of(module):
    def kernel_of(path, class_name="Tiny"):
        return kernel_file.find_kernel(path, class_name)

    return kernel_of


async def test_generate_edit_stale_validate(make_jobs, memory, module, kernel_of):
    """The whole life of a kernel on one worker; one test, because a worker takes seconds to warm up."""
    jobs, path = make_jobs(device="interpreter"), module()
    kernel = kernel_of(path)

    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    report = job.report
    assert report.candidates[report.chosen].verdict.status == "ok", report.candidates[report.chosen].verdict
    assert report.specimen.inputs[0].shape == [8, 64]
    assert report.device.kind == "interpreter"
    assert report.file == str(kernel)
    assert 0 < report.seconds["ready"] <= report.seconds["verdict"] <= report.seconds["report"]
    percentages = [arguments[2] for arguments in memory.named("progress", job)]
    assert percentages == sorted(percentages)
    assert all(0 <= percentage <= 100 for percentage in percentages)
    assert memory.states[0][0] == "running"  # a verdict comes before the end
    assert len(memory.named("finished", job)) == 1

    written = kernel_file.read(kernel)
    assert not written.edited
    assert written.fingerprint == report.target.fingerprint
    assert (written.class_name, written.source, written.generator) == ("Tiny", "module.py::Tiny", "synthesizer")
    assert written.claim.verdict.status == "ok"
    assert not written.claim.timed  # no GPU was asked: nothing was timed
    assert written.header["envelope"]["inputs"][0].startswith("x: float32[")
    assert "class TinyTriton(Tiny)" in written.body
    assert "def why_not(self, x)" in written.body and "_log_why_not(self, x)" in written.body
    assert f'_warn_if_changed("{why_eager.digest_of(TINY, "Tiny")}")' in written.body
    ast.parse(kernel.read_text())

    # Generated again it is the same but for the moment, and stays untouched.
    stamp, moment = kernel.stat().st_mtime_ns, written.header["validated"]["at"]
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done" and job.report.file == str(kernel), job.error
    assert kernel.stat().st_mtime_ns == stamp
    assert kernel_file.read(kernel).header["validated"]["at"] == moment

    # The same again is as good, and the module's doc string is no part of what it computes.
    path.write_text(TINY.replace("Twice", "Two times"))
    job = await over(jobs.submit("validate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    assert job.report.chosen == 0
    assert kernel_file.read(kernel).fingerprint == written.fingerprint

    # Written in another way, which computes the same: the file's warning is for the class of now.
    path.write_text(again := TINY.replace("x * 2 + 1", "(2 * x) + 1"))
    job = await over(jobs.submit("validate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    renewed = kernel_file.read(kernel)
    assert renewed.body == why_eager.renewed(written.body, why_eager.digest_of(again, "Tiny")) != written.body
    assert not renewed.edited and renewed.claim.verdict.status == "ok"

    # Another formula: the kernel is out of date now, and the header says so with the new fingerprint.
    path.write_text(TINY.replace("x * 2 + 1", "x * 3 + 1"))
    job = await over(jobs.submit("validate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    assert job.report.chosen is None
    assert job.report.candidates[0].verdict.status == "outdated"
    assert job.report.why
    stale = kernel_file.read(kernel)
    assert stale.claim.verdict.status == "outdated"
    assert stale.fingerprint not in ("", written.fingerprint)
    assert stale.body == renewed.body

    # Edited by the user: validated all the same, but the file is theirs.
    edited = kernel.read_text() + "# mine\n"
    kernel.write_text(edited)
    job = await over(jobs.submit("validate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    assert "edited" in job.report.why
    assert kernel.read_text() == edited
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert isinstance(job.error, errors.KernelFileEdited)
    job = await over(jobs.submit("generate", target(path, "Tiny"), path, overwrite=True))
    assert job.state == "done", job.error
    assert kernel_file.read(kernel).claim.verdict.status == "ok"
    assert not kernel_file.read(kernel).edited

    # The class has become one that the kernel takes no call of: that is no cheat, also when it is asked again.
    path.write_text(TINY.replace("torch.randn(8, 64)", "torch.randn(8, 64, dtype=torch.float64)"))
    for _ in range(2):
        job = await over(jobs.submit("validate", target(path, "Tiny"), path))
        assert job.state == "done", job.error
        verdict = job.report.candidates[0].verdict
        assert verdict.status == "outdated" and "generate it again" in verdict.reason, verdict
    assert kernel_file.read(kernel).claim.verdict.status == "outdated"


async def test_a_class_that_changed_where_no_input_shows_it_has_a_kernel_out_of_date(
    make_jobs, module, kernel_of, tmp_path, monkeypatch
):
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    text = TINY.replace("x * 2 + 1", "torch.where(x.sigmoid() < 1.5, x * 2 + 1, x - 7.0)")
    jobs, path = make_jobs(device="interpreter"), module(text)
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    (limit,) = [one for one in job.report.candidates[0].verdict.limits if one.endswith(schema.UNSHOWN)]
    assert "x.sigmoid() >= 1.5 at module.py:" in limit
    assert limit.removesuffix(f" {schema.UNSHOWN}") in kernel_file.read(kernel_of(path)).header["not-checked"]

    path.write_text(text.replace("x - 7.0", "x - 8.0"))
    for _ in range(2):
        job = await over(jobs.submit("validate", target(path, "Tiny"), path))
        verdict = job.report.candidates[0].verdict
        assert (verdict.status, job.report.chosen) == ("outdated", None), verdict
        assert "x.sigmoid() >= 1.5" in verdict.reason and verdict.reason.endswith(schema.GENERATE_AGAIN)
    assert kernel_file.read(kernel_of(path)).claim.verdict.status == "outdated"

    path.write_text(text)  # for which the kernel was found correct before, as the store says
    job = await over(jobs.submit("validate", target(path, "Tiny"), path))
    assert job.report.candidates[0].verdict.status == "ok", job.report.candidates[0].verdict
    assert kernel_file.read(kernel_of(path)).claim.verdict.status == "ok"

    path.write_text(
        text.replace("return torch.where(x.sigmoid()", "share = x.sigmoid()\n        return torch.where(share")
    )
    job = await over(jobs.submit("validate", target(path, "Tiny"), path))
    assert job.report.candidates[0].verdict.status == "ok", job.report.candidates[0].verdict  # it computes the same


async def test_a_kernel_that_was_wrong_before_an_edit_of_its_class_is_wrong(make_jobs, module, tmp_path, kernel_of):
    jobs, path = make_jobs(device="interpreter"), module(TINY)
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done", job.error
    kernel = kernel_of(path, "Tiny")
    written = kernel_file.read(kernel)
    spoiled = written.body.replace("+ 1.0", "+ 1.5")
    assert spoiled != written.body
    kernel_file.write(kernel, kernel_file.assemble(written.header, spoiled), written.source)
    for text in (TINY, TINY.replace("x * 2 + 1", "(2 * x) + 1")):
        path.write_text(text)
        job = await over(jobs.submit("validate", target(path, "Tiny"), path))
        assert job.state == "done", job.error
        verdict = job.report.candidates[0].verdict
        assert verdict.status == "wrong" and "changed since" not in verdict.reason, verdict
    assert kernel_file.read(kernel).claim.verdict.status == "wrong"


async def test_inputs_from_pyproject_and_their_absence(make_jobs, module, tmp_path, kernel_of):
    (tmp_path / "pyproject.toml").touch()
    jobs, path = make_jobs(device="interpreter"), module(GIVEN)
    job = await over(jobs.submit("generate", target(path, "Given"), path))
    assert isinstance(job.error, errors.NoExampleInputs)
    assert not kernel_of(path, "Given").exists()

    (tmp_path / "pyproject.toml").write_text('[tool.kernel-lsp.inputs."module.py::Given"]\nargs = ["float32[4, 32]"]\n')
    job = await over(jobs.submit("generate", target(path, "Given"), path, write=False))
    assert job.state == "done", job.error
    assert job.report.specimen.inputs[0].shape == [4, 32]
    assert job.report.file is None
    assert not kernel_of(path, "Given").exists()


async def test_a_class_that_is_not_there(make_jobs, module):
    jobs, path = make_jobs(), module()
    job = await over(jobs.submit("generate", target(path, "Missing"), path))
    assert isinstance(job.error, errors.ClassNotFound)


async def test_a_validation_without_a_kernel_file(make_jobs, module):
    jobs, path = make_jobs(), module()
    job = await over(jobs.submit("validate", target(path, "Tiny"), path))
    assert isinstance(job.error, errors.NotAKernelFile)
    assert jobs.worker_pids() == []


def timed(kernel: float, eager: float = 100.0, device: str = "H100") -> schema.Measurement:
    def timing(median: float) -> schema.Timing:
        return schema.Timing(median, 0.98 * median, 1.02 * median, 50)

    spec = class_schema.TensorSpec("x", [8, 64], "float32")
    shape = schema.ShapeMeasurement([spec], eager=timing(eager), kernel=timing(kernel))
    return schema.Measurement([shape], schema.Device(device, "cuda"))


@pytest.mark.parametrize(("found", "said"), [("ok", "slower"), ("wrong", "wrong")])
def test_a_follow_up_keeps_the_times_and_what_was_said_of_them(found, said):
    from kernel_lsp.jobs.validate import _keep_times

    device = schema.Device("H100", "cuda", copy_bandwidth=3e12)
    known = Validation(schema.Verdict("slower", reason="correct, but slower"), timed(120), device, "2026-01-01")
    validated = schema.Validated(schema.Candidate("", "synthesizer"), schema.Verdict(found, reason="off"), None)
    report = schema.Report(schema.Target("", "A"))
    _keep_times(report, known, validated)
    assert (validated.verdict.status, validated.measurement, report.device) == (said, known.measurement, device)


@pytest.mark.slow
async def test_what_was_validated_is_kept_unless_the_class_changed_meanwhile(make_jobs, module, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    jobs, path = make_jobs(device="interpreter"), module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path, write=False))
    assert job.state == "done" and job.report.warnings == [], job.error
    (chosen,) = job.report.candidates
    body = kernel_file.body_hash(chosen.candidate.source)

    def found(fingerprint):
        return validations.find(
            validations.key_for(job.report.device, fingerprint, body, "trust"), tmp_path / "store.sqlite"
        )

    kept = found(job.target.fingerprint)
    assert kept.verdict == chosen.verdict and kept.device.kind == "interpreter"

    # Which of its versions was validated is not known where the file changes under the worker.
    path.write_text(TINY.replace("x * 2", "x * 4"))
    read = Run.read_source
    monkeypatch.setattr(Run, "read_source", lambda run: read(run).replace("x * 4", "x * 5"))
    fingerprints = []
    take = Run.take_fingerprint

    def take_and_change(run):
        fingerprints.append(take(run))
        monkeypatch.setattr(Run, "read_source", read)
        return fingerprints[-1]

    monkeypatch.setattr(Run, "take_fingerprint", take_and_change)
    job = await over(jobs.submit("generate", target(path, "Tiny"), path, write=False))
    assert job.state == "done", job.error
    body = kernel_file.body_hash(job.report.candidates[0].candidate.source)
    assert found(fingerprints[0]) is None


async def test_a_kernel_for_a_class_that_changed_meanwhile_gets_no_verdict(make_jobs, module, kernel_of, monkeypatch):
    """A newcomer edits and saves while the first kernel of a class is generated."""
    jobs, path = make_jobs(device="interpreter"), module()
    request = Worker.request

    async def edited(worker, method, *arguments, **options):
        if method == "validate":
            path.write_text(TINY.replace("x * 2", "x * 4"))
        return await request(worker, method, *arguments, **options)

    monkeypatch.setattr(Worker, "request", edited)
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert isinstance(job.error, errors.ClassChanged), (job.report, job.error)
    assert str(job.error).startswith("Tiny, or something it uses, changed while its kernel was generated.")
    assert not kernel_of(path).exists()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "done" and kernel_of(path).exists()


def test_the_fastest_correct_candidate_is_chosen():
    from kernel_lsp.jobs.ranking import fastest

    def validated(status, measurement):
        return schema.Validated(schema.Candidate("", "g"), schema.Verdict(status), measurement)

    assert fastest([]) is None
    assert fastest([validated("wrong", timed(1))]) is None
    assert fastest([validated("wrong", timed(1)), validated("ok", timed(9)), validated("slower", timed(8))]) == 2
    assert fastest([validated("ok", None), validated("ok", None)]) == 0
    assert fastest([validated("ok", None), validated("ok", timed(9))]) == 1


@pytest.mark.parametrize("kind", ["generate", "explain"])
@pytest.mark.parametrize(
    ("more", "error"), [("\n\nclass Later(:\n", errors.SyntaxInvalid), ("", errors.NoExampleInputs)]
)
async def test_what_the_text_shows_is_told_before_a_worker_starts(make_jobs, tmp_path, monkeypatch, kind, more, error):
    async def not_started(self):
        raise errors.InterpreterMissing(interpreter="python", detail="no worker starts here")

    monkeypatch.setattr(Worker, "start", not_started)
    (tmp_path / "pyproject.toml").write_text("")
    path = tmp_path / "given.py"
    path.write_text(GIVEN + more)
    jobs = make_jobs(device="interpreter")
    further = {"further": {"stages": ["graph"], "gpu": None, "leave": [], "example": 0}} if kind == "explain" else {}
    job = await over(jobs.submit(kind, target(path, "Given"), path, write=False, **further))
    assert type(job.error) is error and job.error.path == str(path)
    path.write_text(GIVEN + "\n\ndef get_inputs():\n    return [torch.ones(3)]\n")
    job = await over(jobs.submit(kind, target(path, "Given"), path, write=False, **further))
    assert type(job.error) is errors.InterpreterMissing
    # Another interpreter may take what this Python does not.
    path.write_text(GIVEN + "\n\ndef get_inputs():\n    return [torch.ones(3)]\n\n\nclass Later(:\n")
    jobs = make_jobs(device="interpreter", interpreter=str(tmp_path / "python"))
    job = await over(jobs.submit(kind, target(path, "Given"), path, write=False, **further))
    assert type(job.error) is errors.InterpreterMissing


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import dataclasses\n\n\n@dataclasses.dataclass\nclass Given:\n    n: int = 1\n", "Given"),
        ("from math import floor\n", "floor"),
        ("from functions import apply_rotary\n", "apply_rotary"),
    ],
)
async def test_what_is_no_module_is_called_that_and_asked_for_no_inputs(make_jobs, tmp_path, text, name):
    (tmp_path / "functions.py").write_text("def apply_rotary(x):\n    return x\n")
    (tmp_path / "given.py").write_text(text)
    path = tmp_path / "given.py"
    job = await over(make_jobs(device="interpreter").submit("generate", target(path, name), path, write=False))
    assert type(job.error) is errors.NotAModule


async def test_where_the_time_was_over_before_a_generator_was_asked_it_says_what_to_raise(make_jobs, module):
    path = module()
    job = await over(
        make_jobs(device="interpreter", seconds=0.01).submit("generate", target(path, "Tiny"), path, write=False)
    )
    assert type(job.error) is errors.NoCandidates
    assert str(job.error).endswith("because the time was over. Raise kernelLsp.seconds.")


SUMS = """
import torch

class Sums(torch.nn.Module):
    def forward(self, x, to):
        return torch.zeros(20, 16).scatter_reduce(0, to[:, None].expand(-1, 16), x, "mean", include_self=False)

def get_inputs():
    return [torch.randn(64, 16), torch.randint(0, 20, (64,))]
"""


async def test_kernels_beside_what_torch_does_anyway_are_no_offence(make_jobs, module):
    jobs, path = make_jobs(device="interpreter"), module(SUMS)
    job = await over(jobs.submit("generate", target(path, "Sums"), path))
    assert isinstance(job.error, errors.NothingToLower) and not job.report.candidates
    assert "aten.scatter_reduce: torch does the work" in str(job.error)


RETURNS_DATACLASS = """
from __future__ import annotations
from dataclasses import dataclass
import torch

@dataclass(frozen=True)
class Output:
    value: torch.Tensor
    loss: torch.Tensor | None = None
    kind: str = "doubled"

class Encoder(torch.nn.Module):
    def forward(self, x):
        return Output(x * 2 + 1)

def get_inputs():
    return [torch.randn(8, 64)]
"""


async def test_a_module_that_returns_a_dataclass_gets_a_kernel_file(make_jobs, module, kernel_of):
    jobs, path = make_jobs(device="interpreter"), module(RETURNS_DATACLASS)
    job = await over(jobs.submit("generate", target(path, "Encoder"), path))
    assert job.state == "done", job.error
    verdict = job.report.candidates[job.report.chosen].verdict
    assert (verdict.status, verdict.reason) == ("ok", "")
    body = kernel_file.read(kernel_of(path, "Encoder")).body
    assert "_Output = sys.modules[Encoder.__module__].Output" in body
    assert 'kind="doubled")' in body and "loss=" not in body.split("return _Output(", 1)[1].split("\n", 1)[0]
