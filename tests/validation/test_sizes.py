"""Sizes of dynamic dimensions: what is done where a kernel, or the module itself, does not bear those of a check."""

from __future__ import annotations

import pytest

from kernel_lsp.validation import plan
from tests.validation.modules import DOUBLED_KERNEL

MODULE = """
import os, signal
class Doubled(nn.Module):
    def forward(self, x):
        {before}
        return x * 2
def get_inputs():
    return [torch.randn(3, 64, 20)]
"""
CRASHES = "if x.numel() == 0: os.kill(os.getpid(), signal.SIGSEGV)"


@pytest.mark.parametrize("elsewhere", ["x.shape[1] // 2 != 32", "x.shape[1:] != (64, 20)", "x.shape != (3, 64, 20)"])
def test_a_kernel_for_the_sizes_of_the_example_is_tested_at_these(validate, elsewhere):
    result = validate(MODULE.format(before="pass"), "Doubled", DOUBLED_KERNEL.format(elsewhere=elsewhere))
    verdict = result["verdict"]
    assert verdict["status"] == "ok", verdict["reason"]
    (example,) = [check for check in verdict["checks"] if check["name"] == "example inputs"]
    assert "64" in example["detail"] and verdict["launches"] == 1
    assert plan.CUT_DOWN not in verdict["limits"]


def test_an_example_that_runs_in_full_leaves_no_size_unchecked(validate):
    """Of the larger one the limit says that it was cut down."""
    for rows, cut in ((3, False), (300, True)):
        module = MODULE.format(before="pass").replace("3, 64, 20", f"{rows}, 20")
        verdict = validate(module, "Doubled", DOUBLED_KERNEL.format(elsewhere="False"))["verdict"]
        assert verdict["status"] == "ok", verdict["reason"]
        assert (plan.CUT_DOWN in verdict["limits"]) == cut


def test_a_kernel_that_is_never_launched_cheats(validate):
    verdict = validate(MODULE.format(before="pass"), "Doubled", DOUBLED_KERNEL.format(elsewhere="True"))["verdict"]
    assert verdict["status"] == "cheating" and "no Triton kernel" in verdict["reason"]


def test_a_check_in_which_the_module_crashes_is_left_out_and_said(validate):
    result = validate(MODULE.format(before=CRASHES), "Doubled", DOUBLED_KERNEL.format(elsewhere="False"))
    verdict = result["verdict"]
    assert verdict["status"] == "ok", verdict["reason"]
    assert "no elements (the process that runs the module crashed there)" in verdict["limits"]
    assert "no elements" not in [check["name"] for check in verdict["checks"]]
