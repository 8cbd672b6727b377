"""Its example is a fully expanded tensor."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Double(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs(): return [torch.randn(1, 1).expand(7, 40)]
"""
KERNEL = elementwise("Double", "x * 2").replace("y = torch.empty_like(x)", "y = torch.empty(x.shape, device=x.device)")
EXPECTED = HONEST
