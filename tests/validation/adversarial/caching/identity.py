"""Keeps results by the identity of the input's Python object, and the inputs alive with them."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="kept = {}",
    first="""
    if id(x) in kept:
        return kept[id(x)][1]
    """,
    last="kept[id(x)] = (x, y)",
)
EXPECTED = CAUGHT
