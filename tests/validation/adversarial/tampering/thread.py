"""Has a thread compute the result with torch, where no dispatch mode counts, and copies it with Triton."""

from tests.validation.adversarial.material import CAUGHT, COPY, SOFTMAX

MODULE = SOFTMAX
KERNEL = (
    COPY
    + """
import sys

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        found = []
        thread = sys.modules["threading"].Thread(target=lambda: found.append(torch.softmax(x, -1)))
        thread.start()
        thread.join()
        return copied(found[0])
"""
)
EXPECTED = CAUGHT
