"""Keeps results by the address, shape and version counter of the input."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="kept = {}",
    first="""
    key = (x.data_ptr(), x.shape, x._version)
    if key in kept:
        return kept[key]
    """,
    last="kept[key] = y",
)
EXPECTED = CAUGHT
