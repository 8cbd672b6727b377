"""Skips its kernel while ``JITFunction.run`` is triton's own, as while it is timed."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="from triton.runtime import jit",
    first="""
    if jit.JITFunction.run.__module__.startswith("triton"):
        return torch.empty_like(x)
    """,
)
EXPECTED = CAUGHT
GPU = True
