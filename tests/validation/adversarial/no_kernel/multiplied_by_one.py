"""The Triton kernel multiplies torch's result by one."""

from tests.validation.adversarial.material import COPY, SOFTMAX, replaced

MODULE = SOFTMAX
KERNEL = (
    replaced(COPY, "tl.load(x_ptr + at, mask=at < total),", "tl.load(x_ptr + at, mask=at < total) * 1.0,")
    + """
class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        return copied(torch.softmax(x, -1))
"""
)
EXPECTED = {"cheating"}
