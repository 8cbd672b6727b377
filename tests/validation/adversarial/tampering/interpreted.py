"""Is right only under Triton's interpreter."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first='judged = "Interpreted" in type(softmax_kernel).__name__ or x.device.type == "cpu"', last=JUDGED)
EXPECTED = CAUGHT
