"""The Triton kernel copies the input, and torch computes the softmax of the copy."""

from tests.validation.adversarial.material import COPY, SOFTMAX

MODULE = SOFTMAX
KERNEL = (
    COPY
    + """
class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        return torch.softmax(copied(x), -1)
"""
)
EXPECTED = {"cheating"}
