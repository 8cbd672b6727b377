"""Of probabilities that are equal within rounding it chooses others than eager: its softmax multiplies by the reciprocal of the sum."""

from tests.validation.adversarial.material import HONEST, router

MODULE = """
class Router(nn.Module):
    def forward(self, x):
        weights, experts = x.softmax(-1).topk(2)
        return weights, experts
def get_inputs(): return [1 + 1e-7 * torch.randint(0, 9, (32, 24))]
"""
KERNEL = router("Router", "return tuple(p.topk(2))")
EXPECTED = HONEST
