"""Indices out of range: with ``bounds = "check"`` a kernel has to raise where eager does, else that is a limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernel_lsp.validation import plan
from tests.worker.worker_client import Client

EMBEDDING = """
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(12, 16)
    def forward(self, ids):
        return self.table(ids + 1) * 2
def get_inputs(): return [torch.randint(0, 11, (4, 8))]
"""
GATHER = """
class Pick(nn.Module):
    def forward(self, x, at):
        return x.gather(1, at) * 2
def get_inputs(): return [torch.randn(4, 10), torch.randint(0, 10, (4, 6))]
"""
CROSS_ENTROPY = """
class Loss(nn.Module):
    def forward(self, x, target):
        return F.cross_entropy(x, target)
def get_inputs(): return [torch.randn(6, 10), torch.randint(0, 10, (6,))]
"""
COMPUTED = """
class Boxes(nn.Module):
    def forward(self, x, boxes):
        return x[boxes[:, 0].long()] * 2
def get_inputs(): return [torch.randn(4, 10), torch.tensor([[0., 1.], [3., 1.]])]
"""
#: class → module, what the kernel file checks, and what the validation tried
CASES = {
    "Words": (EMBEDDING, '_check_indices("indices", indices, 12)', "12 in ids"),
    "Pick": (GATHER, '_check_indices("at", at, x.shape[1])', "10 in at, -1 in at"),
    "Loss": (CROSS_ENTROPY, "masked_fill(target == -100, 0), x.shape[1])", "10 in target, -1 in target"),
}
STEP, LIMIT = "indices out of range", "indices out of range (eager raises an error"


def given(write: Callable[..., str], name: str) -> dict[str, Any]:
    text = COMPUTED if name == "Boxes" else CASES[name][0]
    path = write("import torch\nimport torch.nn.functional as F\nfrom torch import nn\n" + text)
    return {"path": path, "class_name": name, "device": "interpreter", "seconds": 60}


@pytest.mark.parametrize(
    "name", [name if name == "Pick" else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_a_kernel_that_checks_its_indices(worker: Client, write: Callable[..., str], name: str) -> None:
    job = given(write, name) | {"bounds": "check"}
    source = worker.call("synthesize", **job)["candidates"][0]["source"]
    assert CASES[name][1] in source
    verdict = worker.call("validate", source=source, measure="none", **job)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")
    tried = {check["name"]: check["detail"] for check in verdict["checks"]}
    assert tried[STEP] == f"it raises an error for {CASES[name][2]}"
    assert not [limit for limit in verdict["limits"] if "IndexError" in limit or limit.startswith(LIMIT)]


@pytest.mark.slow
def test_a_kernel_that_trusts_its_indices(worker: Client, write: Callable[..., str]) -> None:
    job = given(write, "Loss")
    source = worker.call("synthesize", **job)["candidates"][0]["source"]
    assert "_check_indices" not in source
    trusted = worker.call("validate", source=source, measure="none", **job)["verdict"]
    assert trusted["status"] == "ok" and any(limit.startswith(LIMIT) for limit in trusted["limits"])
    assert STEP not in [check["name"] for check in trusted["checks"]]
    checked = worker.call("validate", source=source, measure="none", bounds="check", **job)["verdict"]
    assert checked["status"] == "wrong" and "the index 10 in target is out of range" in checked["reason"]


def test_an_index_that_is_computed_from_floats_is_the_first_of_the_limits(
    worker: Client, write: Callable[..., str]
) -> None:
    job = given(write, "Boxes")
    answer = worker.call("synthesize", **job)
    assert answer["specimen"]["computes_indices"]
    verdict = worker.call("validate", source=answer["candidates"][0]["source"], measure="none", **job)["verdict"]
    assert verdict["status"] == "ok" and verdict["limits"][0].startswith(LIMIT)
    assert verdict["limits"][-1] in [*plan.INTERPRETER_LIMITS, plan.CUT_DOWN]
