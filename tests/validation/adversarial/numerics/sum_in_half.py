"""Adds up a long row in float16."""

from tests.validation.adversarial.material import rows

MODULE = """
class Total(nn.Module):
    def forward(self, x):
        return x.sum(-1)
def get_inputs(): return [torch.randn(5, 200)]
"""
KERNEL = rows("Total", "y = tl.sum(x.to(tl.float16), axis=0).to(tl.float32)")
EXPECTED = {"wrong"}
