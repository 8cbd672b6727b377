"""Two kernels, one after the other, with memory between them."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Whiten(nn.Module):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / (1 + x.abs().amax(-1, keepdim=True))
def get_inputs(): return [torch.randn(6, 50)]
"""
KERNEL = """
@triton.jit
def facts_kernel(x_ptr, f_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(f_ptr + 2 * row, tl.sum(x, axis=0) / n)
    largest = tl.max(tl.abs(x), axis=0)
    tl.store(f_ptr + 2 * row + 1, tl.where(tl.sum((x != x).to(tl.int32), axis=0) > 0, float("nan"), largest))

@triton.jit
def whiten_kernel(x_ptr, f_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n)
    y = (x - tl.load(f_ptr + 2 * row)) / (1 + tl.load(f_ptr + 2 * row + 1))
    tl.store(y_ptr + row * n + cols, y, mask=cols < n)

class WhitenTriton(Whiten):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        block = triton.next_power_of_2(x.shape[1])
        facts = torch.empty(x.shape[0], 2, device=x.device)
        y = torch.empty_like(x)
        facts_kernel[(x.shape[0],)](x, facts, x.shape[1], BLOCK=block)
        whiten_kernel[(x.shape[0],)](x, facts, y, x.shape[1], BLOCK=block)
        return y
"""
EXPECTED = HONEST
