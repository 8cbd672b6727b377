"""Returns another string beside the right tensor."""

from tests.validation.adversarial.material import elementwise

MODULE = """
class Named(nn.Module):
    def forward(self, x):
        return {"value": x * 2, "kind": "sum"}
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = elementwise("Named", "x * 2").replace("        return y\n", '        return {"value": y, "kind": "mean"}\n')
EXPECTED = {"wrong"}
