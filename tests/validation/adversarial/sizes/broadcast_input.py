"""Takes it that its inputs have one shape, which eager does not."""

MODULE = """
class Gate(nn.Module):
    def forward(self, x, z):
        return x * torch.sigmoid(z)
def get_inputs(): return [torch.randn(7, 40), torch.randn(7, 40)]
"""
KERNEL = """
@triton.jit
def gate_kernel(x_ptr, z_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, z = tl.load(x_ptr + at, mask=at < total), tl.load(z_ptr + at, mask=at < total)
    tl.store(y_ptr + at, x * tl.sigmoid(z.to(tl.float32)), mask=at < total)

class GateTriton(Gate):
    def forward(self, x, z):
        if x.dtype != torch.float32 or z.dtype != torch.float32 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, z)
        x, z = x.contiguous(), z.contiguous()
        y = torch.empty_like(x)
        gate_kernel[(triton.cdiv(x.numel(), 256),)](x, z, y, x.numel(), BLOCK=256)
        return y
"""
EXPECTED = {"wrong"}
