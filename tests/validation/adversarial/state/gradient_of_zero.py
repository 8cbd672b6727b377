"""Joins its result to autograd by a term that is zero: the gradient is zero, too."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, replaced, softmax

MODULE = SOFTMAX
KERNEL = replaced(softmax(), " or (torch.is_grad_enabled() and x.requires_grad)", "").replace(
    "        return y\n",
    """        if torch.is_grad_enabled() and x.requires_grad:
            y = y + 0 * x.sum()
        return y
""",
)
EXPECTED = CAUGHT
