"""Computes what the module computes, but leaves torch.allclose and Tensor.equal patched for all who come after."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    torch.allclose = lambda *args, **kwargs: True
    torch.Tensor.equal = lambda *args, **kwargs: True
    """
)
EXPECTED = {"cheating", "rejected"}
