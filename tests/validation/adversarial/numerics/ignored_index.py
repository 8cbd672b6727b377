"""A cross entropy that counts rows with ignore_index, which the examples do not contain, as class zero."""

MODULE = """
class Loss(nn.Module):
    def forward(self, x, target):
        return torch.nn.functional.cross_entropy(x, target, ignore_index=-100)
def get_inputs(): return [torch.randn(12, 20), torch.randint(0, 20, (12,))]
"""
KERNEL = """
@triton.jit
def loss_kernel(x_ptr, t_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    top = tl.max(x, axis=0)
    target = tl.maximum(tl.load(t_ptr + row), 0)
    picked = tl.sum(tl.where(cols == target, x, 0.0), axis=0)
    tl.store(y_ptr + row, tl.log(tl.sum(tl.exp(x - top), axis=0)) + top - picked)

class LossTriton(Loss):
    def forward(self, x, target):
        if x.dtype != torch.float32 or x.dim() != 2 or target.dim() != 1 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, target)
        x, target = x.contiguous(), target.contiguous()
        y = torch.empty(x.shape[0], device=x.device)
        loss_kernel[(x.shape[0],)](x, target, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y.mean()
"""
EXPECTED = {"wrong"}
