"""Where a candidate may leave the work to eager: with module and inputs converted to float64 it is held to eager's error there."""

from __future__ import annotations

#: computes in float32 whatever the module's dtype: the inputs are integers, and the frequencies have the default dtype
SINUSOIDS = """
import math
class Sinusoids(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
        args = t[:, None].float() * freqs[None]
        return torch.cat((args.cos(), args.sin()), dim=-1)
def get_inputs(): return [torch.randint(900, 1000, (16,))]
def get_init_inputs(): return [32]
"""
SINUSOIDS_KERNEL = """
@triton.jit
def sinusoids_kernel(t_ptr, y_ptr, HALF: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, HALF)
    angle = tl.load(t_ptr + row).to(tl.float32) * tl.exp2(at * (-13.287712379549449 / HALF))
    tl.store(y_ptr + row * 2 * HALF + at, tl.cos(angle))
    tl.store(y_ptr + row * 2 * HALF + HALF + at, tl.sin(angle))

class SinusoidsTriton(Sinusoids):
    def forward(self, t):
        if t.dim() != 1 or t.dtype != torch.int64 or not t.numel() or self.dim != 32:
            return super().forward(t)
        y = torch.empty(len(t), 32, device=t.device)
        sinusoids_kernel[(len(t),)](t.contiguous(), y, HALF=16)
        return y
"""

SCALE = """
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(40) + 0.5)
    def forward(self, x):
        return x * self.weight
def get_inputs(): return [torch.randn(9, 40)]
"""
#: rounds float64 to float32 on its way
SCALE_KERNEL = """
@triton.jit
def scale_kernel(x_ptr, w_ptr, y_ptr, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    tl.store(y_ptr + at, x * tl.load(w_ptr + at % n, mask=mask).to(tl.float32), mask=mask)

class ScaleTriton(Scale):
    def forward(self, x):
        required = torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad)
        if x.dtype != self.weight.dtype or x.dim() != 2 or required:
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel():
            scale_kernel[(triton.cdiv(x.numel(), 256),)](x, self.weight, y, x.numel(), x.shape[1], BLOCK=256)
        return y
"""


def test_where_the_module_computes_in_float32_all_the_same_its_own_error_counts(validate):
    verdict = validate(SINUSOIDS, "Sinusoids", SINUSOIDS_KERNEL)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")
    assert [c["detail"][:19] for c in verdict["checks"] if c["name"] == "float64"] == ["its kernels take it"]


def test_a_kernel_that_takes_float64_and_rounds_it_to_float32_is_wrong(validate):
    verdict = validate(SCALE, "Scale", SCALE_KERNEL)["verdict"]
    assert verdict["status"] == "wrong", verdict
    assert verdict["reason"].startswith("with module and inputs converted to float64: output[")


#: hands out a view of a parameter beside what it computes, as for an input that is missing
MISSING = """
class Missing(nn.Module):
    def __init__(self):
        super().__init__()
        self.empty = nn.Parameter(torch.ones(8))
    def forward(self, x):
        return torch.relu(x), self.empty.expand(4, -1)
def get_inputs(): return [torch.randn(4, 8)]
"""
MISSING_KERNEL = """
@triton.jit
def relu_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total, other=0.0)
    tl.store(y_ptr + at, tl.where(x != x, x, tl.maximum(x, 0.0)), mask=at < total)

class MissingTriton(Missing):
    def forward(self, x):
        if torch.is_grad_enabled() and (x.requires_grad or self.empty.requires_grad):
            return super().forward(x)
        if x.dtype != torch.float32 or self.empty.dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y, self.empty.expand(4, -1)
"""


def test_a_result_that_is_a_view_of_a_parameter_requires_no_gradient_where_that_does_not(validate):
    verdict = validate(MISSING, "Missing", MISSING_KERNEL)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")


def test_a_result_that_requires_gradients_where_the_modules_does_not_is_not_called_detached(validate):
    spoiled = MISSING_KERNEL.replace(
        "            return super().forward(x)\n        if x.dtype",
        "            y, empty = super().forward(x)\n            return y, empty + 0 * x.sum()\n        if x.dtype",
    )
    verdict = validate(MISSING, "Missing", spoiled)["verdict"]
    assert verdict["status"] == "wrong" and "x alone its output requires them, too" in verdict["reason"]
