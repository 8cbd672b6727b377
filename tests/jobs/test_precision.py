"""Kernels that were asked for with ``precision``: the file remembers it, and is validated under it whatever is set by now."""

from __future__ import annotations

import json

import pytest

from kernel_lsp import cli, kernel_file
from kernel_lsp.store import validations

from .conftest import over, target

MODULE = """
import torch
import torch.nn.functional as F

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(24, 48) / 7)

    def forward(self, x):
        return F.relu(F.linear(x, self.weight))

def get_inputs():
    return [torch.randn(16, 48)]
"""
SOFTMAX = """
import torch

class Layer(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)

def get_inputs():
    return [torch.randn(16, 48)]
"""
#: rounds as a GPU does in TF32, which Triton's interpreter leaves out
TEN_BITS = """
@triton.jit
def _ten_bits(x):
    return ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


"""


def rounding(body: str) -> str:
    """The body with operands that are rounded where they are multiplied."""
    changed = body.replace("tl.dot(x, weight,", "tl.dot(_ten_bits(x), _ten_bits(weight),")
    assert changed != body, body
    return changed.replace("\n@triton.jit\n", TEN_BITS + "@triton.jit\n", 1)


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_the_file_remembers_what_it_was_asked_for(make_jobs, module, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    path = module(MODULE)
    jobs = make_jobs(device="interpreter", precision="tf32")
    job = await over(jobs.submit("generate", target(path, "Layer"), path))
    assert job.state == "done", job.error
    chosen = job.report.candidates[job.report.chosen]
    assert (chosen.verdict.status, chosen.verdict.held_to) == ("ok", "tf32"), chosen.verdict.reason
    assert any("precision of tf32 products" in limit for limit in chosen.verdict.limits)
    kernel = kernel_file.find_kernel(path, "Layer")
    written = kernel_file.read(kernel)
    assert written.precision == written.header["precision"] == written.claim.verdict.held_to == "tf32"
    key = validations.key_for(job.report.device, written.fingerprint, written.actual_body, "trust", "tf32")
    assert validations.find(key, tmp_path / "store.sqlite") is not None
    strict = validations.key_for(job.report.device, written.fingerprint, written.actual_body, "trust")
    assert validations.find(strict, tmp_path / "store.sqlite") is None  # nothing says that it is as exact as float32

    # The setting is another one by now: the file's own counts, and its verdict stays.
    header = {key: value for key, value in written.header.items() if key != "body"}
    kernel.write_text(kernel_file.assemble(header, rounding(written.body)))
    jobs = make_jobs(device="interpreter")
    job = await over(jobs.submit("validate", target(path, "Layer"), path))
    assert job.state == "done", job.error
    verdict = job.report.candidates[0].verdict
    assert (verdict.status, verdict.held_to) == ("ok", "tf32"), verdict.reason
    assert verdict.error > 1e-5
    assert kernel_file.read(kernel).precision == "tf32"

    # Without that field it is a kernel like any other, which may not round.
    del header["precision"]
    kernel.write_text(kernel_file.assemble(header, rounding(written.body)))
    job = await over(jobs.submit("validate", target(path, "Layer"), path))
    assert (job.report.candidates[0].verdict.status, job.report.candidates[0].verdict.held_to) == ("wrong", "strict")

    # A sum that lacks something is wrong at any precision, and the reason names it.
    lacking = rounding(written.body).replace("acc = tl.zeros", "acc = 0.05 + tl.zeros")
    kernel.write_text(kernel_file.assemble(header | {"precision": "half"}, lacking))
    job = await over(jobs.submit("validate", target(path, "Layer"), path))
    assert job.report.candidates[0].verdict.status == "wrong"
    assert job.report.why.endswith("(at half precision)")


@pytest.mark.timeout(100)
def test_the_command_line_asks_for_it(module, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("KERNEL_LSP_STORE", "")
    path = module(MODULE)
    asked = ["generate", f"{path}::Layer", "--precision", "half", "--device", "interpreter"]
    assert cli.main([*asked, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["candidates"][report["chosen"]]["verdict"]["held_to"] == "half"
    kernel = kernel_file.find_kernel(path, "Layer")
    assert kernel_file.read(kernel).precision == "half"
    assert cli.main(["validate", str(kernel), "--device", "interpreter"]) == 0
    assert "ok · half precision" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["generate", str(path), "--precision", "low"])


@pytest.mark.slow
@pytest.mark.timeout(100)
async def test_a_kernel_without_products_is_strict_whatever_was_asked_for(make_jobs, module):
    path = module(SOFTMAX)
    job = await over(make_jobs(device="interpreter", precision="half").submit("generate", target(path, "Layer"), path))
    assert job.report.candidates[job.report.chosen].verdict.held_to == "strict"
    written = kernel_file.read(kernel_file.find_kernel(path, "Layer"))
    assert written.precision == "strict" and "precision" not in written.header
