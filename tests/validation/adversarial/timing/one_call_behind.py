"""Returns the result of the last call and computes this one's for the next, where the shapes are the same."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="last = {}",
    last="""
    behind = last.get(x.shape, y)
    last[x.shape] = y
    y = behind
    """,
)
EXPECTED = CAUGHT
