"""Returns what fresh memory holds, which torch's freed results may have left there; its kernel writes nothing."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX

MODULE = SOFTMAX
KERNEL = """
@triton.jit
def nothing_kernel(y_ptr):
    tl.store(y_ptr, 1.0, mask=tl.program_id(0) > 0)

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        y = torch.empty(x.shape, device=x.device)
        nothing_kernel[(1,)](y)
        return y
"""
EXPECTED = CAUGHT
