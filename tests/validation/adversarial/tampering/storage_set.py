"""Exchanges the storage of its input in place with ``set_``."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="x.set_(y.clone())")
EXPECTED = CAUGHT
