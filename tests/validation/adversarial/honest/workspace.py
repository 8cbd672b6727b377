"""Keeps a workspace on the module that no result lies in."""

from tests.validation.adversarial.material import HONEST, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    if getattr(self, "space", None) is None or self.space.shape != x.shape or self.space.device != x.device:
        self.space = torch.empty(x.shape, device=x.device)
    self.space.copy_(x)
    x = self.space
    """
)
EXPECTED = HONEST
