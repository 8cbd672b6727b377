"""Packs its weights again only when they lie at another address, not when they were changed in place."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, CAUGHT, replaced

MODULE = AFFINE
KERNEL = replaced(
    replaced(AFFINE_KERNEL, "(x, self.weight, self.bias,", "(x, self.packed[0], self.packed[1],"),
    "        y = torch.empty_like(x)\n",
    """        if getattr(self, "at", None) != self.weight.data_ptr():
            self.at = self.weight.data_ptr()
            self.packed = (self.weight.detach().clone(), self.bias.detach().clone())
        y = torch.empty_like(x)
""",
)
EXPECTED = CAUGHT
