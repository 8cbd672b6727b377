"""Right kernels pass; wrong ones, each wrong in one way, are caught with the status and a reason that says why."""

from __future__ import annotations

import pytest

from tests.validation.modules import (
    AFFINE,
    AFFINE_KERNEL,
    CUBED_NORM,
    CUBED_NORM_KERNEL,
    ROW_SUM,
    ROW_SUM_KERNEL,
    SELF_ATTENTION,
    SELF_ATTENTION_KERNEL,
    SOFTMAX,
    SOFTMAX_KERNEL,
)

RIGHT = {
    "softmax": (SOFTMAX, "Softmax", SOFTMAX_KERNEL),
    "affine": (AFFINE, "Affine", AFFINE_KERNEL),
    "variance": (ROW_SUM, "RowVariance", ROW_SUM_KERNEL),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_passes(validate, name):
    result = validate(*RIGHT[name])
    verdict = result["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")
    assert verdict["mode"] == "interpreter"
    assert verdict["launches"] == 1
    assert verdict["precision"] == "fp32"
    assert 0 < verdict["error"] < 1e-5
    names = {check["name"] for check in verdict["checks"]}
    assert verdict["error_check"] in names
    assert {"drop-in", "odd sizes", "gradients", "launches", "float64", "large values", "sliced memory"} <= names
    (kernel,) = verdict["kernels"]
    assert kernel["target"] == "cuda:90" and kernel["registers"] > 0 and kernel["spills"] == 0
    assert result["measurement"]["shapes"] == [] and "no CUDA GPU here" in result["measurement"]["missing"]


def test_huge_values_for_which_eager_overflows_are_left_out_and_that_is_said(validate):
    verdict = validate(CUBED_NORM, "CubedNorm", CUBED_NORM_KERNEL)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")
    assert "huge values for which eager itself overflows" in verdict["limits"]


def test_eager_takes_the_way_through_torch_that_it_takes_where_the_kernel_is_tried(validate):
    verdict = validate(SELF_ATTENTION, "SelfAttention", SELF_ATTENTION_KERNEL)["verdict"]
    assert "no elements" not in verdict["reason"]
    assert "no elements" in {check["name"] for check in verdict["checks"]}


#: name → (which right kernel, what is replaced, by what, status, a part of the reason)
WRONG = {
    "a constant": ("softmax", "x / tl.sum(x, axis=0)", "x * 0 + 1.0 / n", "wrong", "relative error"),
    "zeros": ("affine", "x * w + b", "x * 0", "wrong", "relative error"),
    "an ignored bias": ("affine", "x * w + b", "x * w", "wrong", "random values, moved parameters"),
    "an ignored weight": ("affine", "x * w + b", "x + b", "wrong", "random values, moved parameters"),
    "an unstable softmax": ("softmax", "x - tl.max(x, axis=0)", "x", "wrong", "among the inputs"),
    "a mean for a sum": ("variance", "(n - 1.0)", "n", "wrong", "relative error"),
    "a hard-coded shape": ("softmax", "x.shape[1], BLOCK", "300, BLOCK", "wrong", "sizes"),
    "a hard-coded stride": ("softmax", "row * stride", "row * n", "wrong", "padded memory"),
    "ignored strides": ("affine", "x = x.contiguous()", "pass", "wrong", "memory"),
    "an unwritten tail": (
        "softmax",
        "+ cols, x / tl.sum(x, axis=0), mask=mask",
        "+ cols, x / tl.sum(x, axis=0), mask=cols < n - 1",
        "wrong",
        "nan",
    ),
    "an unwritten row": (
        "softmax",
        "softmax_kernel[(x.shape[0],)]",
        "softmax_kernel[(x.shape[0] - 1,)]",
        "wrong",
        "nan",
    ),
    "a write past the end": ("affine", "x * w + b, mask=mask", "x * w + b", "wrong", "past the end"),
    "a write before the start": (
        "variance",
        "tl.store(y_ptr + row,",
        "tl.store(y_ptr - 1, 0.0)\n    tl.store(y_ptr + row,",
        "wrong",
        "before the start",
    ),
    "a changed input": (
        "softmax",
        "tl.store(y_ptr + row * n",
        "tl.store(x_ptr + row * stride + cols, x * 0, mask=mask)\n    tl.store(y_ptr + row * n",
        "wrong",
        "changes input x",
    ),
    "another dtype": ("softmax", "return y\n", "return y.half()\n", "wrong", "dtype float16"),
    "another shape": ("variance", "return y\n", "return y[:, None]\n", "wrong", "shape"),
    "a tuple": ("variance", "return y\n", "return y, y\n", "wrong", "returns (tensor, tensor)"),
    "no tensor": ("variance", "return y\n", "return y.tolist()\n", "wrong", "returns"),
    "half precision inside": (
        "softmax",
        "x - tl.max(x, axis=0)",
        "(x - tl.max(x, axis=0)).to(tl.float16).to(tl.float32)",
        "wrong",
        "relative error",
    ),
    "a detached output": ("softmax", " or (torch.is_grad_enabled() and x.requires_grad)", "", "wrong", "detached"),
    "float64 in float32": (
        "softmax",
        "x.dtype != torch.float32 or ",
        "x.dtype not in (torch.float32, torch.float64) or ",
        "wrong",
        "converted to float64",
    ),
    "a result kept by its address": (
        "softmax",
        "        return y\n",
        "        if not hasattr(self, 'kept'):\n            self.kept = y\n        return self.kept\n",
        "wrong",
        "",
    ),
    "a decoy": ("softmax", "return y\n", "return torch.softmax(x, -1)\n", "cheating", "decoy"),
    "no launch": (
        "softmax",
        "        if x.dtype",
        "        return super().forward(x)\n        if x.dtype",
        "cheating",
        "launches no Triton kernel",
    ),
    "an extra parameter": (
        "affine",
        "    def forward(self, x):",
        "    def __init__(self, dim):\n        super().__init__(dim)\n        self.more = torch.nn.Parameter(torch.ones(3))\n    def forward(self, x):",
        "not-drop-in",
        "extra 'more'",
    ),
    "a parameter of another shape": (
        "affine",
        "    def forward(self, x):",
        "    def __init__(self, dim):\n        super().__init__(dim)\n        self.bias = torch.nn.Parameter(torch.ones(dim, 1))\n    def forward(self, x):",
        "not-drop-in",
        "[40, 1]",
    ),
    "another constructor": (
        "affine",
        "    def forward(self, x):",
        "    def __init__(self):\n        super().__init__(40)\n    def forward(self, x):",
        "not-drop-in",
        "cannot be constructed",
    ),
    "a kernel that does not compile": ("softmax", "tl.max(x, axis=0)", "tl.maximal(x)", "compile-error", "maximal"),
    "shapes that do not go together": ("softmax", "cols < n\n", "tl.arange(0, 2 * BLOCK) < n\n", "compile-error", ""),
    "a launcher that raises": (
        "softmax",
        "y = torch.empty(",
        "raise KeyError('tile')\n        y = torch.empty(",
        "crashed",
        "KeyError: 'tile'",
    ),
    "a crash": (
        "softmax",
        "x_ptr + row * stride + cols, mask",
        "x_ptr + row * stride + cols + (1 << 40), mask",
        "crashed",
        "SIGSEGV",
    ),
    "an exit": (
        "softmax",
        "y = torch.empty(",
        "import os; os._exit(0)\n        y = torch.empty(",
        "crashed",
        "exit status 0",
    ),
    "a kill": (
        "softmax",
        "y = torch.empty(",
        "import os; os.kill(os.getpid(), 9)\n        y = torch.empty(",
        "crashed",
        "SIGKILL",
    ),
    "too much memory": (
        "softmax",
        "y = torch.empty(",
        "torch.ones(1 << 34)\n        y = torch.empty(",
        "out-of-memory",
        "",
    ),
    "a syntax error": ("softmax", "def forward(self, x):", "def forward(self, x)", "rejected", "does not parse"),
    "another name": ("softmax", "class SoftmaxTriton", "class ModelNew", "rejected", "no class SoftmaxTriton"),
    "a strange import": ("softmax", "@triton.jit", "import subprocess\n@triton.jit", "rejected", "imports subprocess"),
    "an import that fails": (
        "softmax",
        "@triton.jit",
        "import nothing_like_it\n@triton.jit",
        "rejected",
        "nothing_like_it",
    ),
}

#: the line, in the candidate's source, that these are to name
LINES = {
    "a kernel that does not compile": 10,
    "shapes that do not go together": 9,
    "a launcher that raises": 19,
    "a syntax error": 14,
    "a strange import": 4,
    "an import that fails": 4,
}


#: like another of these, or like a file of the corpus that make test validates: make test-slow and make test-cases have them
LIKE_ANOTHER = {
    *("a constant", "an ignored bias", "an unwritten row", "ignored strides", "a tuple", "no tensor", "another dtype"),
    *("a parameter of another shape", "a crash", "an exit", "an import that fails", "a result kept by its address"),
    *("zeros", "an unstable softmax", "half precision inside", "a detached output"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LIKE_ANOTHER else name for name in WRONG]
)
def test_a_wrong_kernel_is_caught(validate, name):
    which, old, new, status, said = WRONG[name]
    module, class_name, kernel = RIGHT[which]
    assert old in kernel
    verdict = validate(module, class_name, kernel.replace(old, new, 1))["verdict"]
    assert (verdict["status"], said in verdict["reason"]) == (status, True), verdict
    if name in LINES:
        assert verdict["line"] == LINES[name], verdict


def test_a_kernel_that_hangs_is_stopped(validate):
    kernel = SOFTMAX_KERNEL.replace("y = torch.empty(", "while True: pass\n        y = torch.empty(", 1)
    verdict = validate(SOFTMAX, "Softmax", kernel, seconds=3)["verdict"]
    assert verdict["status"] == "timeout", verdict
    assert verdict["reason"].startswith("the time was over in the check “example inputs”, "), verdict
    assert verdict["reason"].endswith(" to be made. Raise kernelLsp.seconds or use smaller example inputs."), verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("NaN among the inputs", "torch.isnan(x).any()"),
        ("sparse values", "(x == 0).sum() > 3"),
        ("gradients", "torch.is_grad_enabled() and x.requires_grad"),
    ],
)
def test_one_that_hangs_in_a_single_check_is_stopped_and_gains_nothing_by_it(validate, name, where):
    """Also in one that may be left out: whether a kernel hangs or is slow there only its time would tell."""
    begins = "def forward(self, x):\n"
    kernel = SOFTMAX_KERNEL.replace(begins, f"{begins}        while {where}: pass\n", 1)
    verdict = validate(SOFTMAX, "Softmax", kernel, seconds=12, thorough=True)["verdict"]
    assert verdict["status"] == "timeout", verdict
    assert f"the time was over in the check “{name}”, " in verdict["reason"], verdict
    assert "checks had passed, none failed, " in verdict["reason"]
    assert verdict["checks"] and all(check["passed"] for check in verdict["checks"])


@pytest.mark.slow
def test_a_kernel_for_which_there_is_no_time_to_look_at_all_is_not_ok(validate):
    """Each call takes a second, and the checks that have to be made more than there are."""
    kernel = SOFTMAX_KERNEL.replace("y = torch.empty(", "time.sleep(1)\n        y = torch.empty(", 1)
    verdict = validate(SOFTMAX, "Softmax", "import time\n" + kernel, seconds=10)["verdict"]
    assert verdict["status"] == "timeout", verdict
    assert "none failed" in verdict["reason"] and "more have to be made" in verdict["reason"], verdict


def test_the_verdict_comes_before_the_result(validate, worker):
    validate(SOFTMAX, "Softmax", SOFTMAX_KERNEL)
    names = [name for name, _, _ in worker.events]
    assert "progress" in names and "verdict" in names
    assert worker.events[names.index("verdict")][1]["status"] == "ok"


def test_what_was_put_off_and_then_made_is_not_called_skipped(validate):
    """A slow kernel takes up the time before the first verdict; it is wrong in a check that is made after it."""
    kernel = SOFTMAX_KERNEL.replace("row * stride", "row * n", 1)
    kernel = kernel.replace("y = torch.empty(", "sum(range(20_000_000))\n        y = torch.empty(", 1)
    verdict = validate(SOFTMAX, "Softmax", kernel)["verdict"]
    made = {check["name"] for check in verdict["checks"]}
    assert verdict["status"] == "wrong" and "padded memory" in made, verdict
    assert not made & set(verdict["skipped"])
