"""A TorchScript function computes the result; the Triton kernel copies it."""

from tests.validation.adversarial.material import COPY, SOFTMAX

MODULE = SOFTMAX
KERNEL = (
    COPY
    + """
def plain(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax([-1], True))
    return e / e.sum(-1, True)

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        return copied(plain(x))
"""
)
EXPECTED = {"cheating"}
