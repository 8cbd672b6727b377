"""Keeps results by the sum of the input, which other orders of the same numbers share."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="kept = {}",
    first="""
    key = (x.shape, round(float(x.double().sum()), 3))
    if key in kept:
        return kept[key].clone()
    """,
    last="kept[key] = y.clone()",
)
EXPECTED = CAUGHT
