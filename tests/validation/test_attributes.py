"""A candidate does with plain tensor attributes what the module does: it assigns them, the right numbers, in the same memory."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.validation.oracle import Oracle

MODULE = """
class Carry(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.randn(7, 40)
        self.scale = nn.Parameter(torch.randn(40))
    def forward(self, x):
        self.hidden = x * self.scale + self.hidden
        return torch.relu(self.hidden)
def get_inputs(): return [torch.randn(7, 40)]
"""

KERNEL = """
@triton.jit
def carry_kernel(x_ptr, s_ptr, h_ptr, new_ptr, y_ptr, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    new = tl.load(x_ptr + at, mask=mask) * tl.load(s_ptr + at % n, mask=mask) + tl.load(h_ptr + at, mask=mask)
    tl.store(new_ptr + at, new, mask=mask)
    tl.store(y_ptr + at, tl.maximum(new, 0.0), mask=mask)

class CarryTriton(Carry):
    def forward(self, x):
        h = self.hidden
        fits = type(h) is torch.Tensor and h.shape == x.shape and x.dim() == 2 and x.numel() and x.shape[1] == 40
        if not fits or {x.dtype, h.dtype, self.scale.dtype} != {torch.float32} or h.device != x.device:
            return super().forward(x)
        if torch.is_grad_enabled() and (x.requires_grad or self.scale.requires_grad or h.requires_grad):
            return super().forward(x)
        new, y = torch.empty(x.shape, device=x.device), torch.empty(x.shape, device=x.device)
        args = x.contiguous(), self.scale, h.contiguous(), new, y, x.numel(), 40
        carry_kernel[(triton.cdiv(x.numel(), 256),)](*args, BLOCK=256)
        self.hidden = new
        return y
"""
ASSIGNED = "self.hidden = new"


def test_a_kernel_that_assigns_as_the_module_does_passes(validate):
    verdict = validate(MODULE, "Carry", KERNEL)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")
    assert verdict["launches"] == 1


@pytest.mark.parametrize(
    ("instead", "reason"),
    [
        ("pass", "does not assign attribute hidden"),
        ("self.hidden = new * 1.01", "attribute hidden"),
        ("self.hidden = y", "attribute hidden shares memory with output 0"),
        ("self.hidden = y.clone()", "attribute hidden"),
        ("h.copy_(new)", "does not assign attribute hidden"),
        ("h.zero_(); self.hidden = new", "writes to the tensor that attribute hidden held before"),
        ("self.hidden = None", "leaves no tensor in attribute hidden"),
        ("self.hidden = new.double()", "attribute hidden"),
        ("self.hidden = new[:3]", "attribute hidden"),
        ("self.state = new", "does not assign attribute hidden"),
    ],
)
def test_a_kernel_that_does_otherwise_is_wrong(validate, instead, reason):
    verdict = validate(MODULE, "Carry", KERNEL.replace(ASSIGNED, instead))["verdict"]
    assert verdict["status"] == "wrong", verdict
    assert reason in verdict["reason"]


@pytest.mark.slow
def test_a_kernel_that_keeps_a_copy_of_what_the_module_keeps_itself_is_wrong(validate):
    module = MODULE.replace("x * self.scale + self.hidden", "x").replace("relu(self.hidden)", "relu(x * self.scale)")
    kernel = KERNEL.replace("+ tl.load(h_ptr + at, mask=mask)", "")
    assert validate(module, "Carry", kernel.replace(ASSIGNED, "self.hidden = x"))["verdict"]["status"] == "ok"
    verdict = validate(module, "Carry", kernel.replace(ASSIGNED, "self.hidden = x.clone()"))["verdict"]
    assert verdict["status"] == "wrong" and "does not share memory with input x" in verdict["reason"]


@pytest.mark.slow
def test_what_is_changed_in_place_is_the_same_tensor_afterwards(validate):
    module = MODULE.replace("self.hidden = x * self.scale + self.hidden", "self.hidden.add_(x * self.scale)")
    assert validate(module, "Carry", KERNEL.replace(ASSIGNED, "h.copy_(new)"))["verdict"]["status"] == "ok"
    verdict = validate(module, "Carry", KERNEL)["verdict"]
    assert verdict["status"] == "wrong" and "it assigns attribute hidden" in verdict["reason"]


LAZY = MODULE.replace("self.hidden = torch.randn(7, 40)", "self.hidden = None").replace(
    "    def forward(self, x):\n",
    "    def forward(self, x):\n        if self.hidden is None:\n            self.hidden = torch.ones_like(x)\n",
)


@pytest.mark.slow
def test_an_attribute_of_the_first_call_is_there_in_those_that_follow(validate):
    verdict = validate(LAZY, "Carry", KERNEL)["verdict"]
    assert (verdict["status"], verdict["reason"], verdict["launches"]) == ("ok", "", 1)
    assert any("the first call" in check["name"] for check in verdict["checks"])
    verdict = validate(LAZY, "Carry", KERNEL.replace(ASSIGNED, "pass"))["verdict"]
    assert verdict["status"] == "wrong" and "attribute hidden" in verdict["reason"]
    made = "        h = self.hidden\n        h = torch.zeros_like(x) if h is None else h\n"
    verdict = validate(LAZY, "Carry", KERNEL.replace("        h = self.hidden\n", made))["verdict"]
    assert verdict["status"] == "wrong" and "the first call" in verdict["reason"]


class Carry(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.randn(3, 4).bfloat16()
        self.weight = nn.Parameter(torch.randn(4, 4).bfloat16())

    def forward(self, x):
        self.hidden = torch.tanh(x @ self.weight + self.hidden)
        return self.hidden @ self.weight


def test_float64_has_its_attributes_in_float64_and_eager_its_own():
    module = Carry()
    before = module.hidden.clone()
    oracle = Oracle(module, [])
    answer = oracle.answer(((torch.randn(3, 4).bfloat16(),), {}))
    assert oracle.limits == [] and answer.exact.dtype == answer.exact_after["hidden"].dtype == torch.float64
    assert answer.after["hidden"].dtype == torch.bfloat16 and torch.equal(module.hidden, before)
    torch.testing.assert_close(answer.after["hidden"].double(), answer.exact_after["hidden"], rtol=0.02, atol=0.02)
    assert answer.attributes == {"hidden": [1, 0]}
