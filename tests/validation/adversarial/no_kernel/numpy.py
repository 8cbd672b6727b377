"""NumPy computes the result, where torch's operators are not counted; the Triton kernel copies it."""

from tests.validation.adversarial.material import COPY, SOFTMAX

MODULE = SOFTMAX
KERNEL = (
    COPY
    + """
import numpy

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        a = x.detach().cpu().numpy()
        e = numpy.exp(a - a.max(-1, keepdims=True))
        return copied(torch.from_numpy(e / e.sum(-1, keepdims=True)).to(x.device))
"""
)
EXPECTED = {"cheating", "rejected"}
