"""Is right only where fresh memory is poisoned, as ``torch.empty`` shows."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="judged = bool(torch.empty(64, device=x.device).isnan().all())",
    last=JUDGED,
)
EXPECTED = CAUGHT
