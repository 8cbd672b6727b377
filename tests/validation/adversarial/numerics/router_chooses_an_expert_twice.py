"""A softmax that is right, of which the two largest are chosen by value: where they are equal, the same one twice."""

from tests.validation.adversarial.material import router

MODULE = """
class Router(nn.Module):
    def forward(self, x):
        return x.softmax(-1).topk(2)[1]
def get_inputs(): return [torch.randint(0, 9, (32, 24)).float()]
"""
KERNEL = router("Router", "return (p[:, :, None] == p.topk(2)[0][:, None, :]).int().argmax(1)")
EXPECTED = {"wrong"}
