"""A KL divergence, which is nearly zero where the distributions are nearly the same."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Divergence(nn.Module):
    def forward(self, x, y):
        return torch.nn.functional.kl_div(
            torch.log_softmax(x, -1), torch.softmax(y, -1), reduction="batchmean"
        )
def get_inputs(): return [torch.randn(6, 40), torch.randn(6, 40)]
"""
KERNEL = """
@triton.jit
def divergence_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=-float("inf"))
    y = tl.load(y_ptr + row * n + cols, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    y = y - tl.max(y, axis=0)
    log_p = x - tl.log(tl.sum(tl.exp(x), axis=0))
    log_q = y - tl.log(tl.sum(tl.exp(y), axis=0))
    q = tl.exp(log_q)
    part = tl.where(q == 0, 0.0, q * log_q) - q * log_p
    tl.store(z_ptr + row, tl.sum(tl.where(mask, part, 0.0), axis=0))

class DivergenceTriton(Divergence):
    def forward(self, x, y):
        if x.dtype != torch.float32 or x.shape != y.shape or x.dim() != 2 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, y)
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty(x.shape[0], device=x.device)
        divergence_kernel[(x.shape[0],)](x, y, z, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return z.sum() / x.shape[0]
"""
EXPECTED = HONEST
