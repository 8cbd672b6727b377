"""A softmax that is right, of whose equal elements one is chosen: the second is the largest that is smaller than the first."""

from tests.validation.adversarial.material import router

MODULE = """
class Router(nn.Module):
    def forward(self, x):
        return x.softmax(-1).topk(2)[1]
def get_inputs(): return [torch.randint(0, 9, (32, 24)).float()]
"""
KERNEL = router(
    "Router",
    "best, first = p.max(-1, keepdim=True)",
    "return torch.cat([first, p.masked_fill(p == best, -1.0).argmax(-1, keepdim=True)], -1)",
)
EXPECTED = {"wrong"}
