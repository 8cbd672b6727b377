"""Is right only where its input begins inside a larger storage, as between a validation's guards."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="validated = x.untyped_storage().nbytes() >= 65536 + x.numel() * x.element_size()",
    last=VALIDATED,
)
EXPECTED = CAUGHT
