"""Returns float64 where the module returns float32."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y = y.double()")
EXPECTED = {"wrong"}
