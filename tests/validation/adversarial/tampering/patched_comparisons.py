"""Replaces torch's comparisons, and those of torch.testing and triton.testing, with ones that always agree."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    def yes(*args, **kwargs):
        return True

    torch.allclose = torch.equal = torch.isclose = yes
    torch.Tensor.allclose = torch.Tensor.equal = yes
    torch.testing.assert_close = triton.testing.assert_close = yes
    """,
    right=False,
)
EXPECTED = CAUGHT
