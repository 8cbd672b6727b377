"""Is right only under a dispatch mode, such as one that counts torch's operators."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="from torch.utils._python_dispatch import _get_current_dispatch_mode_stack",
    first="judged = bool(_get_current_dispatch_mode_stack())",
    last=JUDGED,
)
EXPECTED = CAUGHT
