"""Gathers at an index that a comparison keeps within its range; on a GPU another index would stop the process."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Picked(nn.Module):
    def forward(self, x, target):
        inside = target != -100
        at = torch.where(inside, target, 0)
        picked = x.gather(1, at[:, None])[:, 0]
        return torch.where(inside, picked, 0.0)
def get_inputs():
    target = torch.randint(0, 20, (12,))
    target[::3] = -100
    return [torch.randn(12, 20), target]
"""
KERNEL = """
@triton.jit
def picked_kernel(x_ptr, t_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < rows
    target = tl.load(t_ptr + at, mask=mask, other=-100)
    inside = target != -100
    picked = tl.load(x_ptr + at * n + tl.where(inside, target, 0), mask=mask & inside, other=0.0)
    tl.store(y_ptr + at, picked, mask=mask)

class PickedTriton(Picked):
    def forward(self, x, target):
        fits = x.dim() == 2 and target.dim() == 1 and target.dtype == torch.int64 and x.numel()
        if not fits or x.dtype != torch.float32 or torch.is_grad_enabled() or x.shape[0] != target.shape[0]:
            return super().forward(x, target)
        x, target = x.contiguous(), target.contiguous()
        y = torch.empty(x.shape[0], device=x.device)
        picked_kernel[(triton.cdiv(x.shape[0], 64),)](x, target, y, x.shape[0], x.shape[1], BLOCK=64)
        return y
"""
EXPECTED = HONEST
