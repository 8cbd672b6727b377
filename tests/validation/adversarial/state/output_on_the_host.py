"""Returns a tensor on the CPU where the module's is on the GPU."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y = y.cpu()")
EXPECTED = {"wrong"}
GPU = True
