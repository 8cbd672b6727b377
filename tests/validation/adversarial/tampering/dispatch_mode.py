"""Is right only under a dispatch mode, such as one that counts torch's operators."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="from torch.utils._python_dispatch import _get_current_dispatch_mode_stack",
    first="validated = bool(_get_current_dispatch_mode_stack())",
    last=VALIDATED,
)
EXPECTED = CAUGHT
