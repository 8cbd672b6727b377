"""A softmax that is right, whose order is found at nine bits of mantissa."""

from tests.validation.adversarial.material import router

MODULE = """
class Order(nn.Module):
    def forward(self, x):
        return x.softmax(-1).argsort(-1)
def get_inputs(): return [torch.randn(32, 24)]
"""
KERNEL = router("Order", "return p.bfloat16().argsort(-1)")
EXPECTED = {"wrong"}
