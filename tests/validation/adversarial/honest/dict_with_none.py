"""Returns a dict of a tensor, None, a string and a boolean."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
class Named(nn.Module):
    def forward(self, x):
        return {"value": x * 2, "loss": None, "kind": "double", "last": True}
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Named", "x * 2").replace(
    "        return y\n", '        return {"value": y, "loss": None, "kind": "double", "last": True}\n'
)
EXPECTED = HONEST
