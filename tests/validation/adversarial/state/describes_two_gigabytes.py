"""Returns one element, expanded to two gigabytes."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y = y.reshape(-1)[:1].expand(1 << 29)")
EXPECTED = CAUGHT
