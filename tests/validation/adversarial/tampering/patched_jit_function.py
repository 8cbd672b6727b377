"""Replaces ``run`` of triton's own classes: launches are counted there, and torch does the work."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    kind = type(softmax_kernel)
    if not hasattr(kind, "mine"):
        counted = kind.mine = kind.run
        def run(self, *args, **kwargs):
            result = counted(self, *args, **kwargs)
            args[1].copy_(torch.softmax(args[0], -1) + 0 * args[1])
            return result
        kind.run = run
    """,
    right=False,
)
EXPECTED = CAUGHT
