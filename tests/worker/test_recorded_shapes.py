"""Timing at recorded shapes: through the real processes, by a clock of the host instead of a GPU's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp import schema, speedup
from kernel_lsp.recording import examples, timed
from tests.recording.made import run_of, shape, tensor

MODULE = """
import torch
class Norm(torch.nn.Module):
    def __init__(self, width=40, eps=1e-5):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width, eps)
    def forward(self, x):
        return torch.softmax(self.norm(x) * 2 + 1, -1)
def get_inputs(): return [torch.randn(6, 40)]
"""
RETURN = "    return softmax\n"
#: 60 % of the time at one shape, 30 % at another, 9 % at the example's, the rest rarely
MIX = [
    shape(tensor("float32[4, 40]"), calls=300, microseconds=20.0),
    shape(tensor("float32[9, 40]"), calls=30, microseconds=100.0),
    shape(tensor("float32[6, 40]"), calls=9, microseconds=100.0),
    shape(tensor("float32[3, 40]"), calls=1, microseconds=100.0),
]


@pytest.fixture
def timed_on_the_host(worker, on_the_host, write, tmp_path):
    """``run(task, shapes, change=(), fast="")``: the answer of ``validate`` or ``tune`` for the synthesizer's kernels, changed by index."""

    def run(
        task: str,
        shapes,
        change: tuple[tuple[int, str, str], ...] = (),
        fast: str = "",
        moving: bool = False,
        seconds: int = 100,
    ):
        path = write(MOVING if moving else MODULE)
        asked = {"path": path, "class_name": "Norm", "device": "interpreter", "training": moving}
        if moving:
            made, sources = {"specimen": worker.call("introspect", **asked)}, [MOVING_KERNEL]
        else:
            made = worker.call("synthesize", **asked)
            sources = [candidate["source"] for candidate in made["candidates"]][:3]
        for index, old, new in change:
            assert old in sources[index]
            sources[index] = sources[index].replace(old, new, 1)
        found = examples.recorded_of(Path(path), [run_of(Path(path), shapes, name="Norm")])["Norm"]
        given = asked | {"specimen": made["specimen"], "scratch": str(tmp_path), "seconds": seconds, "measure": "eager"}
        given |= {"source": sources[0], "sources": sources, "threads": 1, "rates": None, "inputs": None}
        given["recorded"] = timed.table_of(found)
        return on_the_host(task, given, fast, tmp_path)

    return run


MOVING = """
import torch
class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(40)
    def forward(self, x):
        return torch.relu((self.norm(x) + self.norm.running_mean) * 2 + 1)
def get_inputs(): return [torch.randn(6, 40)]
"""
MOVING_KERNEL = """
import torch, triton, triton.language as tl
from module import Norm

@triton.jit
def rest_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.maximum(x * 2 + 1, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=at < n)

class NormTriton(Norm):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = (self.norm(x) + self.norm.running_mean).contiguous()
        y = torch.empty_like(x)
        rest_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y
"""


def sizes(measurement):
    return [(one["inputs"][0]["shape"], one["calls"]) for one in measurement["shapes"]]


@pytest.mark.slow
def test_a_kernel_is_timed_at_the_shapes_with_most_of_the_time_and_the_speedup_is_weighted(timed_on_the_host):
    found = timed_on_the_host("validate", MIX)
    result = found["result"]
    assert result["verdict"]["status"] in ("ok", "slower"), result["verdict"]["reason"]
    measured = result["measurement"]
    assert sizes(measured) == [([6, 40], 9), ([4, 40], 300), ([9, 40], 30)]
    assert measured["recorded"]["source"] == "train.py" and measured["recorded"]["left_out"] == []
    assert measured["recorded"]["share"] == pytest.approx(9900 / 10000)
    for one in measured["shapes"]:
        assert one["eager"]["median"] > 0 and one["kernel"]["median"] > 0 and one["roofline"] > 0
    weighted = {
        way: sum(one["calls"] * one[way]["median"] for one in measured["shapes"]) for way in ("eager", "kernel")
    }
    measurement = schema.from_json(schema.Measurement, measured)
    assert speedup.speedups(measurement)[0] == pytest.approx(weighted["eager"] / weighted["kernel"])
    # The example's times are told before those of the recorded shapes.
    assert [len(one["shapes"]) for one in found["measurements"]] == [1, 3]


@pytest.mark.slow
def test_without_recordings_it_is_the_example_s_alone(timed_on_the_host):
    only = [shape(tensor("float32[4, 40]"), modes=["grad"], trained=True)]  # which no kernel takes
    measured = timed_on_the_host("validate", only)["result"]["measurement"]
    assert sizes(measured) == [([6, 40], None)] and measured["recorded"] is None


@pytest.mark.slow
def test_a_kernel_that_is_wrong_at_a_recorded_shape_is_wrong(timed_on_the_host):
    # Right at every size that the checks try, and wrong where the program calls it.
    wrong = ((0, RETURN, "    return softmax + 1 if x.shape[0] == 9 else softmax\n"),)
    result = timed_on_the_host("validate", MIX, wrong)["result"]
    assert result["verdict"]["status"] == "wrong"
    assert "at the recorded shape float32[9, 40]: output[" in result["verdict"]["reason"]
    assert any(c["name"] == "recorded shapes" and not c["passed"] for c in result["verdict"]["checks"])


@pytest.mark.slow
def test_one_that_is_right_until_it_is_timed_there_cheats(timed_on_the_host):
    late = "    SEEN[0] += x.shape[0] == 9\n    return softmax + 1 if SEEN[0] > 1 and x.shape[0] == 9 else softmax\n"
    change = ((0, RETURN, late), (0, "@triton.jit\n", "SEEN = [0]\n\n\n@triton.jit\n"))
    verdict = timed_on_the_host("validate", MIX, change)["result"]["verdict"]
    reason = "at the recorded shape float32[9, 40]: while it is timed it computes something else"
    assert verdict["status"] == "cheating" and reason in verdict["reason"], verdict["reason"]


@pytest.mark.slow
def test_what_cannot_be_timed_is_left_out_with_the_reason(timed_on_the_host):
    shapes = [
        shape(tensor("float32[4, 40]"), calls=100),
        shape(tensor("float32[4, 40]", order="transposed", stride=[1, 4]), calls=90),
        shape(tensor("float32[400000000, 40]"), calls=80),
        shape(tensor("float32[4, 48]"), calls=70),
        shape(tensor("float32[4, 40]"), calls=60, init={"args": [{"value": 48}], "kwargs": {}}),
        shape(tensor("float32[4, 40]"), calls=50, init={"args": [{"value": 40}], "kwargs": {"eps": {"value": 1e-5}}}),
    ]
    result = timed_on_the_host("validate", shapes)["result"]
    assert result["verdict"]["status"] in ("ok", "slower"), result["verdict"]["reason"]
    measured = result["measurement"]
    assert sizes(measured) == [([6, 40], None), ([4, 40], 150), ([4, 40], 90)]
    assert [one["inputs"][0]["stride"] for one in measured["shapes"][1:]] == [[40, 1], [1, 4]]
    left_out = "; ".join(measured["recorded"]["left_out"])
    assert "60 calls of modules with other constructor arguments" in left_out
    assert "float32[400000000, 40]: not enough memory for inputs of 64 GB" in left_out
    assert "float32[4, 48]: the module fails there" in left_out


@pytest.mark.slow
def test_a_shape_that_the_kernel_leaves_to_eager_is_not_timed(timed_on_the_host):
    narrow = ((0, "type(x) in _PLAIN", "type(x) in _PLAIN and x.shape[0] != 4"),)
    measured = timed_on_the_host("validate", MIX, narrow)["result"]["measurement"]
    assert sizes(measured) == [([6, 40], 9), ([9, 40], 30)]
    assert measured["recorded"]["left_out"] == ["float32[4, 40]: the kernel leaves it to eager"]
    assert measured["recorded"]["share"] == pytest.approx(3900 / 10000)


@pytest.mark.slow
def test_the_schedule_that_is_fastest_over_the_recorded_shapes_is_chosen(timed_on_the_host):
    result = timed_on_the_host("tune", MIX, fast="1")["result"]
    assert result["fastest"] == 1, result["tried"]
    measured = result["measurement"]
    assert sizes(measured) == [([6, 40], 9), ([4, 40], 300), ([9, 40], 30)]
    assert result["verdicts"]["1"]["status"] in ("ok", "slower")
    mixed = [one["mixed"] for one in result["tried"]]
    assert all(mixed) and min(mixed) == mixed[1]


@pytest.mark.slow
def test_a_schedule_that_is_wrong_at_a_recorded_shape_is_not_chosen(timed_on_the_host):
    wrong = ((1, RETURN, "    return softmax + 1 if x.shape[0] == 9 else softmax\n"),)
    result = timed_on_the_host("tune", MIX, wrong, fast="1")["result"]
    assert "at the recorded shape float32[9, 40]" in result["tried"][1]["reason"] and result["fastest"] != 1
    assert result["verdicts"][str(result["fastest"])]["status"] in ("ok", "slower")
    assert sizes(result["measurement"])[0] == ([6, 40], 9)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "status", "after"), [("validate", "crashed", 0), ("tune", "wrong", 1)])
def test_a_kernel_that_ends_its_process_at_a_recorded_shape_is_told(timed_on_the_host, task, status, after):
    # Schedules are called once before, to have their launches compiled.
    ends = "    import os\n    SEEN[0] += x.shape[0] == 9\n"
    ends += f"    if SEEN[0] > {after} and x.shape[0] == 9: os._exit(9)\n    return softmax\n"
    change = ((0, RETURN, ends), (0, "@triton.jit\n", "SEEN = [0]\n\n\n@triton.jit\n"))
    verdict = verdict_of(timed_on_the_host(task, MIX, change)["result"])
    assert verdict["status"] == status, verdict
    assert "at the recorded shape float32[9, 40]: its process ended: exit status 9" in verdict["reason"]


def verdict_of(result):
    return result["verdict"] if "verdict" in result else result["verdicts"]["0"]


@pytest.mark.slow
def test_running_averages_are_put_back_before_each_shape(timed_on_the_host):
    calls = [shape(tensor(f"float32[{n}, 40]"), modes=["training"], calls=n) for n in (4, 6, 9)]
    result = timed_on_the_host("validate", calls, moving=True)["result"]
    assert result["verdict"]["status"] in ("ok", "slower"), result["verdict"]["reason"]
    assert sorted(sizes(result["measurement"])) == [([4, 40], 4), ([6, 40], 6), ([9, 40], 9)]
    assert result["measurement"]["recorded"]["left_out"] == []


@pytest.mark.slow
@pytest.mark.parametrize("task", ["validate", "tune"])
def test_one_that_hangs_at_a_recorded_shape_until_the_time_is_over_is_not_correct(timed_on_the_host, task):
    hangs = "    if x.shape[0] == 9:\n        import time\n\n        time.sleep(99)\n"
    every = tuple((index, RETURN, hangs + RETURN) for index in range(3 if task == "tune" else 1))
    found = timed_on_the_host(task, MIX, every, seconds=25)["result"]
    verdict = verdict_of(found)
    if task == "tune" and verdict["status"] == "ok":
        # Schedules are compiled together, and which of them hung is not known: none has times. Where checks were left, the time is over.
        assert not found["measurement"]["shapes"] and "in the time allowed" in found["measurement"]["missing"]
        return
    assert verdict["status"] == "timeout", verdict
    at_shape, over = (
        "at the recorded shape float32[9, 40]: it gave no answer in the time allowed",
        "the time was over before",
    )
    assert verdict["reason"].startswith(at_shape if task == "validate" else over)
