"""Uses in-place methods and views of tensors alone, and has Triton copy the result."""

from tests.validation.adversarial.material import COPY, SOFTMAX

MODULE = SOFTMAX
KERNEL = (
    COPY
    + """
class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        y = x.clone().sub_(x.amax(-1, True)).exp_()
        return copied(y.div_(y.sum(-1, True)))
"""
)
EXPECTED = {"cheating"}
