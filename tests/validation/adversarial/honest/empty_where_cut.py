"""Leaves out the first 64 columns: where sizes are cut down there is nothing left."""

from tests.validation.adversarial.material import HONEST

MODULE = """
class Rest(nn.Module):
    def forward(self, x):
        return x[:, 64:] * 2
def get_inputs(): return [torch.randn(6, 200)]
"""
KERNEL = """
@triton.jit
def rest_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + 64 + cols, mask=cols < n - 64)
    tl.store(y_ptr + row * (n - 64) + cols, x * 2, mask=cols < n - 64)

class RestTriton(Rest):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or x.shape[1] <= 64 or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        n = x.shape[1]
        y = torch.empty(x.shape[0], n - 64, device=x.device)
        rest_kernel[(x.shape[0],)](x, y, n, BLOCK=triton.next_power_of_2(n - 64))
        return y
"""
EXPECTED = HONEST
