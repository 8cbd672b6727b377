"""Keeps packed weights by their addresses alone, and does not notice that they have changed."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, CAUGHT, replaced

MODULE = AFFINE
KERNEL = replaced(
    replaced(AFFINE_KERNEL, "(x, self.weight, self.bias,", "(x, self.packed[0], self.packed[1],"),
    "        y = torch.empty_like(x)\n",
    """        weights = (self.weight, self.bias)
        state = [w.data_ptr() for w in weights]
        if getattr(self, "packed_state", None) != state:
            self.packed_state = state
            self.packed = [w.detach().clone() for w in weights]
        y = torch.empty_like(x)
""",
)
EXPECTED = CAUGHT
