"""A router in bfloat16: of the groups of experts with the largest sums it chooses the largest, as eager does."""

from tests.validation.adversarial.material import HONEST, router

_CHOICE = """
        p = p.view(-1, 8, 8)
        best = torch.zeros_like(p[..., 0]).scatter(1, p.sum(-1).topk(3)[1], 1)
        return (p * best[..., None]).flatten(1).topk(4)[1]
"""
MODULE = f"""
class Router(nn.Module):
    def forward(self, x):
        p = (x / 8).softmax(-1)
{_CHOICE}
def get_inputs(): return [torch.randn(64, 64).bfloat16()]
"""
SOFTMAX = (
    router("Router")
    .replace("torch.float32", "torch.bfloat16")
    .replace('other=float("-inf"))', 'other=float("-inf")).to(tl.float32) / 8')
    .rstrip()
    + "\n"
)
KERNEL = SOFTMAX + _CHOICE
EXPECTED = HONEST
