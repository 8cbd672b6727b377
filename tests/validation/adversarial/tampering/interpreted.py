"""Is right only under Triton's interpreter."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first='validated = "Interpreted" in type(softmax_kernel).__name__ or x.device.type == "cpu"', last=VALIDATED
)
EXPECTED = CAUGHT
