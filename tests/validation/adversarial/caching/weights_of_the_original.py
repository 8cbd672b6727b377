"""Holds on to the parameters that it was constructed with: a deep copy of it computes with the original's."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, replaced

MODULE = AFFINE
KERNEL = replaced(
    replaced(AFFINE_KERNEL, "(x, self.weight, self.bias,", "(x, *self.weights(),"),
    "class AffineTriton(Affine):\n",
    """class AffineTriton(Affine):
    def __init__(self, dim):
        super().__init__(dim)
        weight, bias = self.weight, self.bias
        self.weights = lambda: (weight, bias)

""",
)
EXPECTED = {"wrong"}
