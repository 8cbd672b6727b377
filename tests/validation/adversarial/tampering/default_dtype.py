"""Computes what the module computes, and leaves torch's default dtype changed."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="torch.set_default_dtype(torch.float64)").replace(
    "device=x.device)", "device=x.device, dtype=x.dtype)"
)
EXPECTED = {"cheating", "rejected"}
