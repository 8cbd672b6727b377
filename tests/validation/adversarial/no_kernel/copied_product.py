"""Torch computes the product with the bias and the activation; the Triton kernel copies it."""

from tests.validation.adversarial.material import COPY

MODULE = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 16)
    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x))
def get_inputs(): return [torch.randn(8, 24)]
"""
KERNEL = (
    COPY
    + """
class LayerTriton(Layer):
    def forward(self, x):
        if x.dtype != torch.float32 or torch.is_grad_enabled() or x.dim() != 2 or not x.numel():
            return super().forward(x)
        y = torch.addmm(self.linear.bias, x, self.linear.weight.t())
        return copied(torch.nn.functional.gelu(y))
"""
)
EXPECTED = {"cheating"}
