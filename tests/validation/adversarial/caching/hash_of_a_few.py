"""Keeps results by the values of three elements of the input."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="kept = {}",
    first="""
    key = (x.shape, float(x[0, 0]), float(x[-1, -1]), float(x[x.shape[0] // 2, x.shape[1] // 2]))
    if key in kept:
        return kept[key].clone()
    """,
    last="kept[key] = y.clone()",
)
EXPECTED = CAUGHT
