"""Modules in training mode: batch statistics, running statistics that are updated, random numbers."""

from __future__ import annotations

import re

import pytest

from tests.worker.worker_client import WorkerError

BATCH_NORM = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
    def forward(self, x):
        return torch.relu(self.norm(x))
def get_inputs(): return [torch.randn(16, 8) * 3 + 1]
"""

BATCH_NORM_KERNEL = """
@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + cols, tl.maximum(x, 0.0), mask=cols < n)

class NormTriton(Norm):
    def forward(self, x):
        required = torch.is_grad_enabled() and any(t.requires_grad for t in (x, *self.parameters()))
        if x.dtype != torch.float32 or x.dim() != 2 or required:
            return super().forward(x)
        x = self.norm(x).contiguous()
        y = torch.empty_like(x)
        if x.numel():
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""

DROPOUT = """
class Drop(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return torch.relu(self.drop(x)) * 3
def get_inputs(): return [torch.randn(16, 40)]
"""

DROPOUT_KERNEL = """
@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + cols, tl.maximum(x, 0.0) * 3, mask=cols < n)

class DropTriton(Drop):
    def forward(self, x):
        if x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad):
            return super().forward(x)
        x = self.drop(x).contiguous()
        y = torch.empty_like(x)
        if x.numel():
            relu_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""


def test_running_statistics_that_are_updated_pass_in_both_modes(validate):
    for training in (False, True):
        verdict = validate(BATCH_NORM, "Norm", BATCH_NORM_KERNEL, training=training)["verdict"]
        assert (verdict["status"], verdict["reason"]) == ("ok", ""), training


def test_running_statistics_that_are_not_updated_are_wrong_in_training_mode(validate):
    batch = "torch.nn.functional.batch_norm(x, None, None, self.norm.weight, self.norm.bias, True)"
    kernel = BATCH_NORM_KERNEL.replace("self.norm(x).contiguous()", f"{batch}.contiguous()")
    verdict = validate(BATCH_NORM, "Norm", kernel, training=True)["verdict"]
    assert verdict["status"] == "wrong"
    assert re.search(r"in training mode buffer norm\.running_mean\[\d\] is 0, in float64 it is", verdict["reason"])


@pytest.mark.slow
def test_random_numbers_are_compared_under_equal_random_states(validate):
    verdict = validate(DROPOUT, "Drop", DROPOUT_KERNEL, training=True)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")
    assert not any("random states" in limit for limit in verdict["limits"])


def test_other_random_numbers_cannot_be_compared(validate):
    kernel = DROPOUT_KERNEL.replace("self.drop(x)", "(torch.rand(1), self.drop(x))[1]")
    with pytest.raises(WorkerError, match="draws random numbers") as caught:
        validate(DROPOUT, "Drop", kernel, training=True)
    assert caught.value.code == "RandomNotComparable"


SUM_IN_ANY_ORDER = """
import random
_ORDER = random.Random(1)
class Sum(nn.Module):
    def forward(self, x):
        order = list(range(x.shape[1]))
        if self.training:
            _ORDER.shuffle(order)
        total = torch.zeros_like(x[:, 0])
        for i in order:
            total = total + x[:, i]
        return total
def get_inputs(): return [torch.randn(16, 64).bfloat16()]
"""

SUM_KERNEL = """
@triton.jit
def sum_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + cols, mask=cols < columns, other=0.0)
    tl.store(y_ptr + row, tl.sum(x.to(tl.float32), axis=0))

class SumTriton(Sum):
    def forward(self, x):
        if x.dtype != torch.bfloat16 or x.dim() != 2 or not x.numel() or torch.is_grad_enabled() and x.requires_grad:
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
        sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""


@pytest.mark.slow
def test_eager_that_sums_in_another_order_each_time_is_not_taken_for_one_that_draws_random_numbers(validate):
    verdict = validate(SUM_IN_ANY_ORDER, "Sum", SUM_KERNEL)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")
    wrong = SUM_KERNEL.replace("tl.sum(x.to(tl.float32), axis=0)", "tl.sum(x.to(tl.float32), axis=0) * 1.2")
    verdict = validate(SUM_IN_ANY_ORDER, "Sum", wrong)["verdict"]
    assert verdict["status"] == "wrong"
