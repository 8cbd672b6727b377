"""Returns a dict with another key."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Named(nn.Module):
    def forward(self, x):
        return {"value": x * 2}
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Named", "x * 2").replace("        return y\n", '        return {"values": y}\n')
EXPECTED = {"wrong"}
