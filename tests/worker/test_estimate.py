"""The worker's estimate of a class, with tensors that take no memory."""

from __future__ import annotations

import pytest

from tests.worker.worker_client import WorkerError

HEAD = "import torch\nfrom torch import nn\n"


def test_an_estimate_of_sizes_beyond_all_memory(worker, write):
    text = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(1 << 18))
    def forward(self, x):
        return torch.relu(x * self.scale + 1.0)
def get_inputs():
    return [torch.randn(1 << 22, 1 << 18)]
"""
    found = worker.call("estimate", path=write(HEAD + text, "large.py"), class_name="Model", target="L4")["estimate"]
    whole = 4 << 40
    assert found["launches"] == 3 and 6 * whole <= found["bytes"] <= 6.001 * whole
    assert 2 * whole <= found["least_bytes"] <= 2.001 * whole
    assert found["speedup"] == pytest.approx(3, rel=0.05) and found["kernel_launches"] == 1


def test_where_values_are_needed_there_is_no_estimate(worker, write):
    text = """
class Model(nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.numpy()) + 1.0
def get_inputs():
    return [torch.randn(8)]
"""
    assert worker.call("estimate", path=write(HEAD + text, "numpies.py"), class_name="Model")["estimate"] is None


def test_what_torch_compile_cannot_take_whole_is_a_hint_with_its_line(worker, write):
    text = """
class Model(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2.0
        return x
def get_inputs():
    return [torch.randn(8)]
"""
    found = worker.call("estimate", path=write(HEAD + text, "branches.py"), class_name="Model")["estimate"]
    assert found["speedup"] is None
    (hint,) = found["hints"]
    assert hint["kind"] == "graph-break" and "line 6" in hint["message"]


def test_what_is_wrong_with_the_class_is_said_as_for_others(worker, write):
    text = "class Model(nn.Module):\n    def forward(self, x):\n        return x\n"
    with pytest.raises(WorkerError) as caught:
        worker.call("estimate", path=write(HEAD + text, "bare.py"), class_name="Model")
    assert caught.value.code == "NoExampleInputs"


def test_an_estimate_is_cancelled_like_any_request_and_others_need_not_wait(worker, write):
    """A request beside it is answered while it runs."""
    slow = write(HEAD + "import time\ntime.sleep(100)\n", "slow.py")
    quick = write(HEAD + "class Model(nn.Module):\n    def forward(self, x):\n        return x + 1.0\n", "quick.py")
    ident = worker.send("estimate", path=slow, class_name="Model")
    inputs = {"args": ["float32[8]"]}
    assert worker.call("introspect", path=quick, class_name="Model", inputs=inputs)["class_name"] == "Model"
    worker.write({"method": "cancel", "params": {"id": ident}})
    with pytest.raises(WorkerError) as caught:
        worker.wait(ident)
    assert caught.value.code == "Cancelled"
