"""Launches on a stream of its own, which the timed one does not wait for."""

from tests.validation.adversarial.material import CAUGHT

MODULE = """
class Softmax(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
def get_inputs():
    return [torch.randn(4096, 1024)]
"""
KERNEL = """
@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * n + cols, x / tl.sum(x, axis=0), mask=mask)

streams = []

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        if not streams:
            streams.append(torch.cuda.Stream())
        streams[0].wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(streams[0]):
            softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
EXPECTED = CAUGHT
GPU = True
