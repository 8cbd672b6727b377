"""Takes half types and returns float32."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax().replace("x.dtype != torch.float32", "x.dtype == torch.float64")
EXPECTED = {"wrong"}
