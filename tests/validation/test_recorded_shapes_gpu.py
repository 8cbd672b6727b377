"""Timing at recorded shapes on a real GPU: weights, memory, and kernels that are slow or wrong at one of them."""

from __future__ import annotations

import pytest

from kernel_lsp import schema, speedup
from tests.recording.made import tensor
from tests.validation.modules import SOFTMAX, SOFTMAX_KERNEL

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

NONE = {"args": [], "kwargs": {}}
NORM = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(1024)
    def forward(self, x):
        return torch.softmax(self.norm(x) * 2 + 1, -1)
def get_inputs(): return [torch.randn(4096, 1024)]
"""


def recorded(*calls: tuple[str, int, float]) -> dict:
    """(tensor, calls, seconds) each, as ``recording.timed.table_of`` tells it."""
    shapes = [
        {"args": [tensor(text)], "kwargs": {}, "init": NONE, "training": False, "calls": count, "seconds": seconds}
        for text, count, seconds in calls
    ]
    return {"from": "train.py", "seconds": sum(seconds for _, _, seconds in calls), "shapes": shapes}


MIX = recorded(("float32[256, 512]", 300, 0.6), ("float32[3000, 1000]", 20, 0.3), ("float32[7, 40]", 1, 0.01))


def test_a_kernel_is_timed_at_recorded_shapes_and_the_speedup_is_weighted(validate):
    result = validate(SOFTMAX, "Softmax", SOFTMAX_KERNEL, device="cuda", measure="eager", recorded=MIX)
    assert result["verdict"]["status"] in ("ok", "slower"), result["verdict"]["reason"]
    measured = result["measurement"]
    print(measured)
    found = [(one["inputs"][0]["shape"], one["calls"]) for one in measured["shapes"][1:]]
    assert found == [([256, 512], 300), ([3000, 1000], 20)]
    assert measured["recorded"]["left_out"] == [] and measured["recorded"]["share"] == pytest.approx(0.9 / 0.91)
    for one in measured["shapes"]:
        assert 0 < one["kernel"]["low"] <= one["kernel"]["median"] and one["eager"]["median"] > 0
        assert one["bytes"] > 0 and 0 < one["roofline_share"] < 1.5 and one["kernel_graph"]["median"] > 0
    measurement = schema.from_json(schema.Measurement, measured)
    eager, kernel = (
        sum(one.calls * getattr(one, way).median for one in measurement.shapes[1:]) for way in ("eager", "kernel")
    )
    assert speedup.speedups(measurement)[0] == pytest.approx(eager / kernel)
    assert not any("still to be checked" in limit for limit in result["verdict"]["limits"])


def test_a_kernel_that_is_slow_where_the_program_calls_it_is_slower(validate):
    again = "        for _ in range(50 if x.shape[0] == 256 else 1):\n            softmax_kernel["
    slow = SOFTMAX_KERNEL.replace("        softmax_kernel[", again)
    assert slow != SOFTMAX_KERNEL
    result = validate(SOFTMAX, "Softmax", slow, device="cuda", measure="eager", recorded=MIX)
    assert result["verdict"]["status"] == "slower", result["verdict"]
    assert result["verdict"]["reason"].endswith("over 2 recorded shapes of train.py, weighted by calls")


def test_a_kernel_that_is_wrong_where_the_program_calls_it_is_wrong(validate):
    wrong = SOFTMAX_KERNEL.replace("        return y\n", "        return y + 1 if x.shape[0] == 3000 else y\n")
    assert wrong != SOFTMAX_KERNEL
    verdict = validate(SOFTMAX, "Softmax", wrong, device="cuda", measure="eager", recorded=MIX)["verdict"]
    assert verdict["status"] == "wrong" and "at the recorded shape float32[3000, 1000]" in verdict["reason"], verdict


def test_one_that_is_right_there_only_until_it_is_timed_cheats(validate):
    late = "        self.seen = getattr(self, 'seen', 0) + (x.shape[0] == 3000)\n"
    late += "        return y + 1 if self.seen > 1 and x.shape[0] == 3000 else y\n"
    kernel = SOFTMAX_KERNEL.replace("        return y\n", late)
    verdict = validate(SOFTMAX, "Softmax", kernel, device="cuda", measure="eager", recorded=MIX)["verdict"]
    assert verdict["status"] in ("cheating", "wrong"), verdict


def test_a_shape_that_does_not_fit_is_left_out_and_the_others_are_timed(validate):
    import torch

    _, total = torch.cuda.mem_get_info()
    fits_not = int(total / 4 / 4 / 512)  # a quarter of the memory: four copies are too many
    shapes = recorded(("float32[256, 512]", 10, 0.5), (f"float32[{fits_not}, 512]", 5, 0.5))
    result = validate(SOFTMAX, "Softmax", SOFTMAX_KERNEL, device="cuda", measure="eager", recorded=shapes)
    assert result["verdict"]["status"] in ("ok", "slower"), result["verdict"]["reason"]
    assert [one["calls"] for one in result["measurement"]["shapes"]] == [None, 10]
    (left_out,) = result["measurement"]["recorded"]["left_out"]
    assert left_out.startswith(f"float32[{fits_not}, 512]: not enough memory"), left_out


def test_schedules_are_compared_over_the_recorded_shapes(worker, tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import torch\nfrom torch import nn\n" + NORM)
    asked = {"path": str(path), "class_name": "Norm", "device": "cuda"}
    candidates = worker.call("synthesize", **asked)["candidates"]
    shapes = recorded(
        ("float32[64, 1024]", 500, 0.6), ("float32[4096, 1024]", 20, 0.2), ("float32[999, 1024]", 50, 0.2)
    )
    sources = [candidate["source"] for candidate in candidates]
    result = worker.call("tune", sources=sources, seconds=120, recorded=shapes, **asked)
    print(result["tried"], result["measurement"])
    assert result["verdicts"][str(result["fastest"])]["status"] in ("ok", "slower")
    found = [(one["inputs"][0]["shape"], one["calls"]) for one in result["measurement"]["shapes"]]
    assert found == [([4096, 1024], 20), ([64, 1024], 500), ([999, 1024], 50)]
    mixed = [one["mixed"] for one in result["tried"] if one["timing"]]
    assert all(mixed) and result["tried"][result["fastest"]]["mixed"] <= 1.0001 * mixed[0]
