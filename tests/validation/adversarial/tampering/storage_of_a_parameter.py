"""Exchanges the storage of a parameter by ``.data``, so that the next caller computes with other weights."""

from tests.validation.adversarial.material import AFFINE, CAUGHT, affine

MODULE = AFFINE
KERNEL = affine(last="self.weight.data = self.weight.data.clone().mul_(1.5)")
EXPECTED = CAUGHT
