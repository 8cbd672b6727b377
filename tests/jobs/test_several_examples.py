"""Several examples of one class through the real processes: one kernel file, an envelope for each that needs its own."""

import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

from kernel_lsp import kernel_file, schema, speedup
from kernel_lsp.jobs import several_envelopes, several_examples
from kernel_lsp.jobs.header import MOST_LINES
from kernel_lsp.recording.calls_left_to_eager import why_outside

from ..recording.made import shape, tensor
from .conftest import over, target

NORM = """
import torch

class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(16))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

def get_inputs_Norm():
    yield [torch.randn(4, 16)]
    yield [torch.randn(1, 16)]
    yield [torch.randn(4, 16, dtype=torch.bfloat16)]
"""

BRANCHING = """
import torch

class Branching(torch.nn.Module):
    def forward(self, x):
        return x.relu() * 2 if x.shape[0] > 64 else torch.tanh(x) + 1

def get_inputs():
    yield [torch.randn(128, 16)]
    yield [torch.randn(8, 16)]
"""

CACHED = """
import torch

class Cached(torch.nn.Module):
    def forward(self, q, k, v, keys=None, values=None):
        if keys is not None:
            k, v = torch.cat([keys, k], dim=1), torch.cat([values, v], dim=1)
        scores = q @ k.transpose(1, 2) * 0.25
        if keys is None:
            scores = scores + torch.full_like(scores, -1e4).triu(1)
        return scores.softmax(-1) @ v, k, v

def get_inputs():
    yield [torch.randn(2, 32, 16) for _ in range(3)]
    yield [*(torch.randn(2, 1, 16) for _ in range(3)), torch.randn(2, 31, 16), torch.randn(2, 31, 16)]
"""

# The module's own forward fails once the expected results are known: what still has a result ran a kernel.
USE = """
import torch
from kernels.{stem}_triton import {name}Triton
from module import {name}

plain, kernel = {name}().eval(), {name}Triton().eval()
kernel.load_state_dict(plain.state_dict())
eager = {name}.forward

def refuse(self, *args, **kwargs):
    raise AssertionError("eager")

def check(*args, tolerance=1e-5):
    expected = plain(*args)
    assert kernel.why_not(*args) is None, kernel.why_not(*args)
    {name}.forward = refuse
    try:
        torch.testing.assert_close(kernel(*args), expected, rtol=tolerance, atol=tolerance)
    finally:
        {name}.forward = eager

def check_eager(*args):
    {name}.forward = refuse
    try:
        kernel(*args)
    except AssertionError:
        print(kernel.why_not(*args))
    finally:
        {name}.forward = eager
    torch.testing.assert_close(kernel(*args), plain(*args))

with torch.no_grad():
"""


def used(path, name, calls):
    """Run ``calls`` in a program of its own that imports the kernel file; what it prints."""
    program = USE.format(stem=name.lower(), name=name) + textwrap.indent(textwrap.dedent(calls), "    ")
    command = [sys.executable, "-c", program]
    environment = {"TRITON_INTERPRET": "1", "PATH": "/usr/bin", "HOME": str(path.parent)}
    done = subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()


def found(report) -> schema.Verdict:
    assert report.chosen is not None, [entry.verdict for entry in report.candidates]
    return report.candidates[report.chosen].verdict


def of_example(envelope: int, **shown: list[bool]) -> schema.Verdict:
    """A correct verdict. ``shown``: of each side in forward, whether it came into a result, for each comparison there."""
    sides = [schema.Side(text, n, one) for text, several in shown.items() for n, one in enumerate(several, 1)]
    limits = list(dict.fromkeys(side.limit for side in sides if not side.shown))
    return schema.Verdict("ok", envelope=envelope, sides=sides, limits=[*limits, "races"])


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([of_example(1, above=[False]), of_example(1, above=[True])], []),
        ([of_example(1, above=[True]), of_example(1, above=[False])], []),
        ([of_example(1, above=[False]), of_example(1, above=[False])], ["above"]),
        ([of_example(1, above=[False]), of_example(1, below=[False])], ["above", "below"]),
        ([of_example(1, above=[False]), of_example(2, above=[True])], ["above"]),  # another kernel
        ([of_example(1, above=[False, False]), of_example(1, above=[True])], ["above"]),  # the second of a loop
        ([of_example(1, above=[False, True]), of_example(1, above=[True, False]), of_example(1)], []),
    ],
)
def test_a_side_of_a_comparison_is_a_limit_where_no_example_shows_it(verdicts, expected):
    first, *others = [schema.Validated(schema.Candidate("", ""), verdict) for verdict in verdicts]
    run = SimpleNamespace(looked_at=None, report=SimpleNamespace(specimen=None), tell_verdict=lambda: None)
    several_examples._combine(run, first, [several_examples._Other(None, one) for one in others])
    found = [limit for limit in first.verdict.limits if limit.endswith(schema.UNSHOWN)]
    assert found == [f"where {text} {schema.UNSHOWN}" for text in expected]
    assert "races" in first.verdict.limits


async def test_float32_and_bfloat16(make_jobs, module, tmp_path, monkeypatch):
    """One test, since a worker takes seconds to warm up: written, used, validated again, and with one example more."""
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    jobs, path = make_jobs(device="interpreter"), module(NORM)
    job = await over(jobs.submit("generate", target(path, "Norm"), path), 300)
    assert job.state == "done", job.error
    verdict = found(job.report)
    assert verdict.status == "ok" and [one.status for one in verdict.examples] == ["ok"] * 3
    assert verdict.examples[2].inputs == "x: bfloat16[4, 16]"
    assert verdict.examples[0].error < 1e-5 < verdict.examples[2].error < 0.05
    assert any(check.name.startswith("example 3: ") for check in verdict.checks)
    kernel = kernel_file.find_kernel(path, "Norm")
    written = kernel_file.read(kernel)
    assert (
        several_envelopes.envelopes(written.body) == 2
    )  # the second example is in the first, though alone it would be exported with a fixed size
    assert written.header["envelope"]["inputs"] == ["x: float32[x_0, 16]"]
    assert [text.partition(";")[0] for text in written.header["envelope"]["further"]] == ["x: bfloat16[x_0, 16]"]
    assert written.body_line <= MOST_LINES and not written.edited

    said = used(
        path,
        "Norm",
        """
        check(torch.randn(5, 16))
        check_eager(torch.randn(5, 16, dtype=torch.float64))
        plain.to(torch.bfloat16), kernel.to(torch.bfloat16)
        check(torch.randn(5, 16, dtype=torch.bfloat16), tolerance=2e-2)
        """,
    )
    assert said == [
        "envelope 1: expected x.dtype == torch.float32, but x.dtype is torch.float64; "
        "envelope 2: expected x.dtype == torch.bfloat16, but x.dtype is torch.float64"
    ]

    module(NORM + "    yield [torch.randn(2, 3, 16)]\n")
    job = await over(jobs.submit("validate", target(path, "Norm"), path), 300)
    assert job.state == "done", job.error
    verdict = found(job.report)
    assert verdict.status == "ok" and [one.status for one in verdict.examples] == ["ok", "ok", "ok", "eager"]
    assert job.report.before.startswith("was validated on this machine")
    assert kernel_file.read(kernel).header["envelope"] == written.header["envelope"]
    assert (
        speedup.example_lines(verdict)[3] == "example 4 (x: float32[2, 3, 16]): runs eagerly, no envelope holds for it"
    )
    assert any("example 4, which runs eagerly" in limit for limit in verdict.limits)


def test_the_errors_of_an_example_are_those_on_its_inputs():
    """A check with tiny values has errors near 1, eager's as well, which say nothing of the example."""
    verdict = schema.Verdict("ok", error=0.8, eager_error=0.8, example_error=1e-6, example_eager_error=2e-6)
    entry = schema.Validated(schema.Candidate("", "synthesizer"), verdict)
    found = several_examples._found(None, entry)
    assert (found.error, found.eager_error) == (1e-6, 2e-6)


async def test_envelopes_that_differ_in_sizes_alone(make_jobs, module, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    jobs, path = make_jobs(device="interpreter"), module(BRANCHING)
    for what in ("generate", "validate"):
        job = await over(jobs.submit(what, target(path, "Branching"), path), 300)
        assert job.state == "done", job.error
        verdict = found(job.report)
        assert [(one.status, one.envelope) for one in verdict.examples] == [("ok", 1), ("ok", 2)]
        assert not any("no example is in" in limit for limit in verdict.limits)
    header = kernel_file.read(kernel_file.find_kernel(path, "Branching")).header
    assert header["envelope"]["further"] == [
        "x: float32[x_0, x_1]; x_0: 1 to 64, 8 in the example; x_1: 1 or more, 16 in the example"
    ]
    assert why_outside(header, shape(tensor("float32[8, 16]"))) == ""
    assert why_outside(header, shape(tensor("float64[8, 16]"))) == "float64"


@pytest.mark.slow
async def test_prefill_and_decode(make_jobs, module):
    jobs, path = make_jobs(device="interpreter"), module(CACHED)
    job = await over(jobs.submit("generate", target(path, "Cached"), path), 300)
    assert job.state == "done", job.error
    assert [one.status for one in found(job.report).examples] == ["ok", "ok"]
    said = used(
        path,
        "Cached",
        """
        check(*(torch.randn(2, 9, 16) for _ in range(3)))
        check(*(torch.randn(2, 1, 16) for _ in range(3)), torch.randn(2, 12, 16), torch.randn(2, 12, 16))
        check_eager(*(torch.randn(2, 3, 16) for _ in range(3)), torch.randn(2, 12, 16), torch.randn(2, 12, 16))
        """,
    )
    assert said == [
        "envelope 1: expected keys is None, but keys is a tensor; envelope 2: expected q.shape[1] == 1, but q.shape[1] is 3"
    ]
