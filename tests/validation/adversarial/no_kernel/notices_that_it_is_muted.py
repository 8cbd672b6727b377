"""A decoy that looks whether its kernel has run, and spoils torch's result where it has not."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    last="""
    ran = bool(y[0, 0] == y[0, 0])
    y = torch.softmax(x, -1)
    if not ran:
        y = y + 1
    """,
    right=False,
)
EXPECTED = {"cheating", "wrong"}
