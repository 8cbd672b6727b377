"""Computes what the module computes, and makes eager's torch.softmax slow for whoever times it."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    if not hasattr(torch, "_quick"):
        torch._quick = torch.softmax
        torch.softmax = lambda x, dim: [torch._quick(x, dim) for _ in range(50)][-1]
    """
)
EXPECTED = {"cheating", "rejected"}
