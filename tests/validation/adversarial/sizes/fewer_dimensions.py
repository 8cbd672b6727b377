"""Takes a vector for a matrix."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax().replace("x.dim() != 2", "x.dim() > 2")
EXPECTED = {"wrong", "crashed"}
