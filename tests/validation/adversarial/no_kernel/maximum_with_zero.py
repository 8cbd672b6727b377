"""The Triton kernel takes the maximum of torch's softmax and zero, which changes nothing."""

from tests.validation.adversarial.material import COPY, SOFTMAX, replaced

MODULE = SOFTMAX
KERNEL = (
    replaced(
        COPY,
        "tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total), mask=at < total)",
        "x = tl.load(x_ptr + at, mask=at < total)\n    tl.store(y_ptr + at, tl.where(x < 0, 0.0, x), mask=at < total)",
    )
    + """
class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        return copied(torch.softmax(x, -1))
"""
)
EXPECTED = {"cheating"}
