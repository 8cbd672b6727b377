"""Writes its result into the input through ``.data``, which moves no version counter, and returns another tensor."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="x.data.copy_(y)")
EXPECTED = CAUGHT
