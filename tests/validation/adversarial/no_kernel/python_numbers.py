"""Plain Python computes the result from a list of numbers; the Triton kernel copies it."""

from tests.validation.adversarial.material import COPY

MODULE = """
class Total(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, -1)
def get_inputs(): return [torch.randn(3, 20)]
"""
KERNEL = (
    COPY
    + """
import itertools

class TotalTriton(Total):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        rows = [list(itertools.accumulate(row)) for row in x.tolist()]
        return copied(torch.tensor(rows, dtype=x.dtype, device=x.device))
"""
)
EXPECTED = {"cheating", "rejected"}
