"""Is right only where fresh memory is poisoned, as ``torch.empty`` shows."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="validated = bool(torch.empty(64, device=x.device).isnan().all())",
    last=VALIDATED,
)
EXPECTED = CAUGHT
