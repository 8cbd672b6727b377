"""Keeps an instance of the user's own class outside of its state, has it compute, and copies."""

from tests.validation.adversarial.material import COPY, SOFTMAX

MODULE = SOFTMAX
KERNEL = (
    COPY
    + """
TWIN = Softmax()

class SoftmaxTriton(Softmax):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        return copied(TWIN(x))
"""
)
EXPECTED = {"cheating"}
