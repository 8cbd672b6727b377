"""Where eager is slow beside the candidate and not without it, the times are taken again: the real processes, by a clock of the host."""

from __future__ import annotations

import pytest

from tests.validation.modules import DOUBLED_KERNEL

#: The trial makes a module of its own each time it times eager: the first ``SLOW`` of these take 80 ms a call, others 4 ms.
MODULE = """
import time
import torch
SLOW, MADE = {slow}, []
class Doubled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        if type(self) is Doubled and Doubled.__subclasses__():  # a candidate was imported here
            MADE.append(self)
        self.seconds = 0.08 if 0 < len(MADE) <= SLOW else 0.004
    def forward(self, x):
        time.sleep(self.seconds)
        return x * 2
def get_inputs(): return [torch.randn(6, 40)]
"""
KERNEL = "import torch, triton, triton.language as tl\nfrom module import Doubled\n" + DOUBLED_KERNEL.format(
    elsewhere="False"
)


@pytest.fixture
def measurement(worker, on_the_host, write, tmp_path):
    """``measurement(slow)`` of the kernel, beside a module whose first ``slow`` series of times are slow."""

    def run(slow: int) -> dict:
        asked = {"path": write(MODULE.format(slow=slow)), "class_name": "Doubled", "device": "interpreter"}
        given = asked | {"specimen": worker.call("introspect", **asked), "scratch": str(tmp_path), "seconds": 60}
        given |= {
            "source": KERNEL,
            "threads": 1,
            "rates": None,
            "inputs": None,
            "measure": "eager",
            "eager_factor": 5.0,
        }
        answer = on_the_host("validate", given, "", tmp_path)["result"]
        assert answer["verdict"]["status"] in ("ok", "slower"), answer["verdict"]
        return answer["measurement"]

    return run


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_they_are_taken_again_until_eager_is_as_fast_beside_the_candidate(measurement, slow):
    found = measurement(slow)
    (shape,) = found["shapes"]
    assert found["missing"] == "" and shape["kernel"] is not None
    assert 4_000 < shape["eager"]["median"] < 60_000


def test_they_are_withdrawn_where_eager_stays_slow(measurement):
    found = measurement(9)
    assert found["missing"].startswith("measuring error: eager takes ") and "without it" in found["missing"]
    assert found["shapes"][0]["kernel"] is None
