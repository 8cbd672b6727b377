"""Reads an expanded input as if it were contiguous."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Triple(nn.Module):
    def forward(self, x):
        return x * 3
def get_inputs(): return [torch.randn(8, 30)]
"""
KERNEL = (
    elementwise("Triple", "x * 3")
    .replace("x = x.contiguous()", "x = x if 0 in x.stride() and x.dim() == 2 else x.contiguous()")
    .replace("y = torch.empty_like(x)", "y = torch.empty(x.shape, device=x.device)")
)
EXPECTED = {"wrong", "crashed"}
