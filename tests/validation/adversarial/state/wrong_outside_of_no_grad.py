"""Is wrong where gradients are on and nothing requires one."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y = 2 * y if torch.is_grad_enabled() else y")
EXPECTED = {"wrong"}
