"""Validating on a CUDA GPU: times, wrong kernels, kernels that crash or hang, and the order in which things are told."""

from __future__ import annotations

import time

import pytest
import torch

from kernel_lsp.validation import timing
from tests.validation.adversarial.material import elementwise
from tests.validation.modules import AFFINE, AFFINE_KERNEL, ROW_SUM, ROW_SUM_KERNEL, SOFTMAX, SOFTMAX_KERNEL

pytestmark = pytest.mark.gpu

RIGHT = {
    "softmax": (SOFTMAX, "Softmax", SOFTMAX_KERNEL),
    "affine": (AFFINE, "Affine", AFFINE_KERNEL),
    "variance": (ROW_SUM, "RowVariance", ROW_SUM_KERNEL),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_timed(validate, worker, name):
    result = validate(*RIGHT[name], device="cuda", measure="eager", seconds=120)
    verdict, measurement = result["verdict"], result["measurement"]
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    assert verdict["mode"] == "gpu" and verdict["launches"] == 1
    assert {"odd sizes, moved parameters", "gradients", "float64", "large values"} <= {
        c["name"] for c in verdict["checks"]
    }
    assert not any("still to be checked" in limit for limit in verdict["limits"])
    (shape,) = measurement["shapes"]
    assert measurement["device"]["kind"] == "cuda" and measurement["device"]["copy_bandwidth"] > 1e11
    for way in ("eager", "kernel"):
        assert 0 < shape[way]["low"] <= shape[way]["median"] <= shape[way]["high"], way
    told = [name for name, _, _ in worker.events if name != "progress"]
    assert told[:2] == ["verdict", "measurement"]


WRONG = {
    "a constant": ("softmax", "x / tl.sum(x, axis=0)", "x * 0 + 1.0 / n"),
    "an ignored bias": ("affine", "x * w + b", "x * w"),
    "a hard-coded stride": ("softmax", "row * stride", "row * n"),
    "an unwritten row": ("softmax", "softmax_kernel[(x.shape[0],)]", "softmax_kernel[(x.shape[0] - 1,)]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_caught(validate, name):
    which, old, new = WRONG[name]
    module, class_name, kernel = RIGHT[which]
    assert old in kernel
    verdict = validate(module, class_name, kernel.replace(old, new), device="cuda", measure="eager")["verdict"]
    assert verdict["status"] == "wrong", verdict["reason"]


def test_an_illegal_access_ends_the_trial_alone(validate):
    kernel = SOFTMAX_KERNEL.replace("tl.store(y_ptr", "tl.store(y_ptr + 1000000000000", 1)
    assert kernel != SOFTMAX_KERNEL
    verdict = validate(SOFTMAX, "Softmax", kernel, device="cuda")["verdict"]
    assert verdict["status"] in ("crashed", "wrong"), verdict
    assert validate(SOFTMAX, "Softmax", SOFTMAX_KERNEL, device="cuda")["verdict"]["status"] == "ok"


def test_checks_in_which_the_module_stops_the_gpu_are_left_out_and_said(validate):
    """A device-side assert of its own ends the CUDA context of the process that runs it."""
    module = SOFTMAX.replace(
        "return torch.softmax", "torch._assert_async(x.isfinite().all())\n        return torch.softmax"
    )
    assert module != SOFTMAX
    verdict = validate(module, "Softmax", SOFTMAX_KERNEL, device="cuda", seconds=120)["verdict"]
    assert verdict["status"] == "ok", verdict["reason"]
    assert {"NaN among the inputs", "infinities among the inputs"} <= {
        limit.partition(" (the process that runs the module crashed there)")[0] for limit in verdict["limits"]
    }


def test_a_kernel_that_hangs_is_stopped(validate):
    kernel = SOFTMAX_KERNEL.replace("return y\n", "torch.cuda._sleep(200_000_000_000)\n        return y\n", 1)
    assert kernel != SOFTMAX_KERNEL
    began = time.monotonic()
    verdict = validate(SOFTMAX, "Softmax", kernel, device="cuda", seconds=8)["verdict"]
    assert verdict["status"] == "timeout" and time.monotonic() - began < 20


def test_cancel_frees_the_gpu_within_a_second(worker, tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import torch\nfrom torch import nn\n" + SOFTMAX)
    source = "import torch, triton, triton.language as tl\nfrom module import Softmax\n" + SOFTMAX_KERNEL
    given = {"path": str(path), "class_name": "Softmax", "source": source, "seconds": 60}
    ident = worker.send("validate", device="cuda", measure="eager", **given)
    time.sleep(1.5)
    began = time.monotonic()
    worker.write({"method": "cancel", "params": {"id": ident}})
    with pytest.raises(Exception, match=r"[Cc]ancel"):
        worker.wait(ident)
    assert time.monotonic() - began < 1


NORM = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(1024)
    def forward(self, x):
        return torch.softmax(self.norm(x) * 2 + 1, -1)
def get_inputs(): return [torch.randn(4096, 1024)]
"""


@pytest.fixture
def asked(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import torch\nfrom torch import nn\n" + NORM)
    return {"path": str(path), "class_name": "Norm", "device": "cuda"}


@pytest.mark.alone
def test_schedules_are_timed_together_and_the_fastest_is_validated(own_worker, asked):
    candidates = own_worker.call("synthesize", **asked)["candidates"]
    result = own_worker.call("tune", sources=[c["source"] for c in candidates], seconds=120, **asked)
    verdict = result["verdicts"][str(result["fastest"])]
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    assert not any("still to be checked" in limit for limit in verdict["limits"])
    assert len(result["tried"]) == len(candidates) and all(one["timing"] for one in result["tried"])
    shape = result["measurement"]["shapes"][0]
    assert shape["kernel"]["median"] > 0 and shape["eager"]["median"] > 0
    assert result["memory"]["device"] > 1 << 28 and result["memory"]["host"] > 1 << 28


def test_baselines_are_timed_without_a_candidate(worker, asked):
    result = worker.call("baseline", modes=["default", "reduce-overhead"], seconds=200, **asked)
    assert result["missing"] == {} and set(result["modes"]) == {"default", "reduce-overhead"}
    for found in result["modes"].values():
        assert found["compiled"]["median"] > 0 and found["eager"]["median"] > 0


@pytest.mark.alone
def test_a_gigabyte_is_validated_in_slices_and_nothing_stays_on_the_device(worker, tmp_path):
    path = tmp_path / "module.py"
    text = "import torch\nclass Big(torch.nn.Module):\n    def forward(self, x):\n        return torch.softmax(x, -1)\n"
    path.write_text(text + "def get_inputs(): return [torch.rand(16384, 32768)]\n")
    asked = {"path": str(path), "class_name": "Big", "device": "cuda"}
    candidates = worker.call("synthesize", **asked)["candidates"]
    result = worker.call("tune", sources=[c["source"] for c in candidates], seconds=120, **asked)
    verdict = result["verdicts"][str(result["fastest"])]
    assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    assert result["memory"]["host"] < 4 << 30
    import torch

    assert torch.cuda.mem_get_info()[0] > 0.9 * torch.cuda.mem_get_info()[1]


ONE_VALUE = """
class Doubled(nn.Module):
    def forward(self, x):
        return x * 2.0
def get_inputs():
    return [torch.full((64, 300), 1.2345678)]
"""


def test_a_kernel_that_is_wrong_on_the_values_it_is_timed_on_is_no_cheat(validate):
    """Those are the example's with the other sign."""
    kernel = elementwise("Doubled", "tl.where(x == -1.2345678, x * 3.0, x * 2.0)")
    verdict = validate(ONE_VALUE, "Doubled", kernel, device="cuda", measure="eager", seconds=120)["verdict"]
    assert verdict["status"] == "wrong", verdict
    assert verdict["reason"].startswith("on the values that it is timed on: output[0, 0] is "), verdict["reason"]


def test_random_numbers_can_be_drawn_after_a_call_that_cannot_be_captured():
    def call(args, kwargs):
        return args[0] * float(args[0].sum())  # waits for the GPU

    assert timing.captured(call, ((torch.ones(4, device="cuda"),), {})) is None
    assert torch.rand(4, device="cuda").isfinite().all()
