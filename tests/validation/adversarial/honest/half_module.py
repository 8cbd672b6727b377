"""A module in float16, which the kernel computes in float32 and rounds once."""

from tests.validation.adversarial.material import HONEST, SOFTMAX_KERNEL

MODULE = """
class Softmax(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
def get_inputs():
    return [torch.randn(6, 100).half()]
"""
KERNEL = (
    SOFTMAX_KERNEL.replace("torch.float32", "torch.float16")
    .replace('other=-float("inf"))', 'other=-float("inf")).to(tl.float32)')
    .replace("not x.numel()", "not x.numel() or torch.is_autocast_enabled(x.device.type)")
    .replace("device=x.device)", "device=x.device, dtype=x.dtype)")
)
EXPECTED = HONEST
