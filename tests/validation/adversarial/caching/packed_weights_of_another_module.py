"""Keeps packed weights for all modules by their version counters and shapes."""

from tests.validation.adversarial.material import AFFINE, AFFINE_KERNEL, replaced

MODULE = AFFINE
KERNEL = "packed = {}\n" + replaced(
    replaced(AFFINE_KERNEL, "(x, self.weight, self.bias,", "(x, packed[key][0], packed[key][1],"),
    "        y = torch.empty_like(x)\n",
    """        weights = (self.weight, self.bias)
        key = tuple((w._version, w.shape) for w in weights)
        if key not in packed:
            packed.clear()
            packed[key] = [w.detach().clone() for w in weights]
        y = torch.empty_like(x)
""",
)
EXPECTED = {"wrong"}
