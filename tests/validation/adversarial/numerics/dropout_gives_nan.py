"""Gives NaN for what dropout leaves of one element, now and then."""

MODULE = """
class Dropped(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(torch.sigmoid(x), 0.5, self.training)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def drop_kernel(x_ptr, r_ptr, y_ptr, total, TRAIN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.sigmoid(tl.load(x_ptr + at, mask=at < total))
    if TRAIN:
        r = tl.load(r_ptr + at, mask=at < total)
        y = tl.where(r > 0.5, y * 2, 0.0)
        y = tl.where((at == 17) & (r > 0.25), float("nan"), y)
    tl.store(y_ptr + at, y, mask=at < total)

class DroppedTriton(Dropped):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        r = torch.rand(x.shape, device=x.device) if self.training else x
        drop_kernel[(triton.cdiv(x.numel(), 256),)](x, r, y, x.numel(), TRAIN=self.training, BLOCK=256)
        return y
"""
EXPECTED = {"wrong"}
