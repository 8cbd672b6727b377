"""Replaces torch.softmax with the wrong thing that its kernel computes."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    def unscaled(x, dim=-1, **kwargs):
        return torch.exp(x - x.amax(dim, keepdim=True))

    torch.softmax = torch.Tensor.softmax = torch.nn.functional.softmax = unscaled
    """,
    right=False,
)
EXPECTED = CAUGHT
