"""Keeps packed weights, and packs them again when their version counter or address has moved."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, HONEST, replaced

MODULE = AFFINE
KERNEL = replaced(
    replaced(AFFINE_KERNEL, "(x, self.weight, self.bias,", "(x, self.packed[0], self.packed[1],"),
    "        y = torch.empty_like(x)\n",
    """        weights = (self.weight, self.bias)
        state = [(w.data_ptr(), w._version) for w in weights]
        if getattr(self, "packed_state", None) != state:
            self.packed_state = state
            self.packed = [w.detach().clone() for w in weights]
        y = torch.empty_like(x)
""",
)
EXPECTED = HONEST
