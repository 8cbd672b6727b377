"""Does not scale what dropout leaves, and takes long, so that few of its draws are compared."""

MODULE = """
class Dropped(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(torch.sigmoid(x), 0.5, self.training)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = """
import time
@triton.jit
def drop_kernel(x_ptr, r_ptr, y_ptr, total, TRAIN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.sigmoid(tl.load(x_ptr + at, mask=at < total))
    if TRAIN:
        y = tl.where(tl.load(r_ptr + at, mask=at < total) > 0.5, y, 0.0)
    tl.store(y_ptr + at, y, mask=at < total)

class DroppedTriton(Dropped):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        r = torch.rand(x.shape, device=x.device) if self.training else x
        time.sleep(0.6 if self.training else 0)
        drop_kernel[(triton.cdiv(x.numel(), 256),)](x, r, y, x.numel(), TRAIN=self.training, BLOCK=256)
        return y
"""
EXPECTED = {"wrong"}
