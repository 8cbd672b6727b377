"""Packs its weights at the first call and never looks at them again."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, CAUGHT, replaced

MODULE = AFFINE
KERNEL = replaced(
    replaced(AFFINE_KERNEL, "(x, self.weight, self.bias,", "(x, self.packed[0], self.packed[1],"),
    "        y = torch.empty_like(x)\n",
    """        if not hasattr(self, "packed"):
            self.packed = (self.weight.detach().clone(), self.bias.detach().clone())
        y = torch.empty_like(x)
""",
)
EXPECTED = CAUGHT
