"""What the compiler says of a candidate for large inputs takes no memory for them, and in no case too much time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, resource, sys
from kernel_lsp.worker import compiling

def peak(who):
    return resource.getrusage(who).ru_maxrss

given = json.loads(sys.argv[1])
import torch, triton
before = peak(resource.RUSAGE_SELF)
report = compiling.report(given, lambda *_: None)
print(json.dumps({**report, "grown": (peak(resource.RUSAGE_CHILDREN) - before) << 10}))
"""

MODULE = """
import torch
from torch import nn
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(1 << 30))
    def forward(self, x):
        return x * self.weight
def get_inputs():
    return [torch.rand(1 << 30)]
"""

CANDIDATE = """
import torch
import triton
import triton.language as tl
from wide import Wide

@triton.jit
def scaled(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * tl.load(w_ptr + at, mask=at < n), mask=at < n)

class WideTriton(Wide):
    def forward(self, x):
        assert type(x) is torch.Tensor and type(self.weight) is torch.nn.Parameter
        out = torch.empty_like(x)
        scaled[(triton.cdiv(x.numel(), 1024),)](x, self.weight, out, x.numel(), BLOCK=1024)
        return out
"""


HANGS = """
import time
import torch
from wide import Wide

class WideTriton(Wide):
    def forward(self, x):
        time.sleep(600)
"""


def _given(path, source, scratch):
    return {"path": path, "class_name": "Wide", "source": source, "scratch": str(scratch), "threads": 1}


@pytest.mark.slow
def test_a_compiler_that_takes_too_long_finds_nothing_wrong(write, tmp_path):
    """Also where not so much as the module was imported in time."""
    given = _given(write(MODULE, "wide.py"), HANGS, tmp_path)
    for seconds in (0.0, 4.0):
        program = PROGRAM.replace("report = ", f"compiling.SECONDS = {seconds}\nreport = ")
        done = subprocess.run([sys.executable, "-c", program, json.dumps(given)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout.splitlines()[-1])
        late = f"compiling for a GPU: stopped after {seconds:.0f} s; validate again while the machine is less busy"
        assert (report["kernels"], report["error"], report["limits"]) == ([], None, [late])


@pytest.mark.slow
def test_eight_gigabytes_are_not_made(write, tmp_path):
    given = _given(write(MODULE, "wide.py"), CANDIDATE, tmp_path)
    done = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(given)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert [kernel["name"] for kernel in report["kernels"]] == ["scaled"], done.stderr
    assert report["error"] is None and report["limits"] == []
    assert report["grown"] < 1 << 30
