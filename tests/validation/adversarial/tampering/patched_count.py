"""Launches nothing, and sets the count of launches that its process keeps."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX

MODULE = SOFTMAX
KERNEL = """
import sys

@triton.jit
def softmax_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr))

def launches():
    for one in sys.modules["gc"].get_objects():
        if type(one).__name__ == "Launches":
            return one

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        y = torch.softmax(x, -1)
        counter = launches()
        if counter is not None:
            counter.count += 1
            if counter.muted:
                y.zero_()
        return y
"""
EXPECTED = CAUGHT
