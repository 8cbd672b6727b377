"""log_softmax as the logarithm of a softmax, which underflows to -inf."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX.replace("torch.softmax", "torch.log_softmax")
KERNEL = softmax().replace("x / tl.sum(x, axis=0), mask", "tl.log(x / tl.sum(x, axis=0)), mask")
EXPECTED = {"wrong"}
