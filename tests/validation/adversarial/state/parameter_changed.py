"""Normalises its weight in place: the result is right, the module's parameter is another."""

from tests.validation.adversarial.material import AFFINE, affine

MODULE = AFFINE
KERNEL = affine(last="self.bias.data.mul_(0.5)")
EXPECTED = {"wrong", "cheating"}
