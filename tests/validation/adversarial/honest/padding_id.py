"""Halves the rows of one index, which the examples do not contain."""

from tests.validation.adversarial.material import HONEST
from tests.validation.adversarial.material_of_integers import of_tokens

MODULE, KERNEL = of_tokens("tl.where(i == 500, 0.5, 1.0)")
EXPECTED = HONEST
