"""Replaces methods of torch.Tensor that a referee in its process would use (clone, ne, any)."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    torch.Tensor.ne = torch.Tensor.__ne__ = lambda self, other: torch.zeros_like(self, dtype=torch.bool)
    torch.Tensor.any = lambda self, *args: torch.zeros((), dtype=torch.bool)
    """
)
EXPECTED = {"cheating", "rejected", "wrong"}
