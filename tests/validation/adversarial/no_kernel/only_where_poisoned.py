"""A kernel that computes only where the output still holds what fresh memory is poisoned with; torch filled the rest."""

from tests.validation.adversarial.material import SOFTMAX, replaced, softmax

MODULE = SOFTMAX
KERNEL = replaced(
    replaced(
        softmax(), "    tl.store(y_ptr", "    old = tl.load(y_ptr + row * n + cols, mask=mask)\n    tl.store(y_ptr"
    ),
    "x / tl.sum(x, axis=0), mask=mask",
    "tl.where(old != old, x / tl.sum(x, axis=0), old), mask=mask",
).replace("y = torch.empty(x.shape, device=x.device)", "y = torch.softmax(x, -1)")
EXPECTED = {"cheating"}
