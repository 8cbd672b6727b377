"""Is wrong under torch.inference_mode."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y = 2 * y if torch.is_inference_mode_enabled() else y")
EXPECTED = {"wrong"}
