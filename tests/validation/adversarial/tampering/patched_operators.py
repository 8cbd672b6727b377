"""Leaves the dispatch mode that counts torch's operators, computes with torch, and copies with Triton."""

from tests.validation.adversarial.material import CAUGHT, COPY, SOFTMAX

MODULE = SOFTMAX
KERNEL = (
    COPY
    + """
from torch.utils import _python_dispatch

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        with _python_dispatch._disable_current_modes():
            y = torch.softmax(x, -1)
        return copied(y)
"""
)
EXPECTED = CAUGHT
