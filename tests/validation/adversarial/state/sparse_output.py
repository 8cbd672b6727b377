"""Returns a sparse tensor of the right values."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y = y.to_sparse()")
EXPECTED = CAUGHT
