"""Returns an expanded tensor, as the module does."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Mean(nn.Module):
    def forward(self, x):
        return x.mean(-1, keepdim=True).expand(x.shape)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def mean_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + row, tl.sum(tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0), axis=0) / n)

class MeanTriton(Mean):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape[0], 1, device=x.device)
        mean_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y.expand(x.shape)
"""
EXPECTED = HONEST
