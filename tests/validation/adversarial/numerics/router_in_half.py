"""A softmax that is right, whose largest are chosen after rounding to float16, where others are equal."""

from tests.validation.adversarial.material import router

MODULE = """
class Router(nn.Module):
    def forward(self, x):
        return x.softmax(-1).topk(2)[1]
def get_inputs(): return [1 + 1e-4 * torch.rand(32, 24)]
"""
KERNEL = router("Router", "return p.half().topk(2)[1]")
EXPECTED = {"wrong"}
