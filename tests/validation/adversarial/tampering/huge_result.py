"""Returns an expanded tensor of a petabyte from one element."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y = y.reshape(-1)[:1].expand(1 << 48)")
EXPECTED = CAUGHT
