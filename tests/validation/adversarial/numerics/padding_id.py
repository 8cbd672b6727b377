"""Forgets that the rows of one index are halved, which the examples do not contain."""

from tests.validation.adversarial.material_of_integers import of_tokens

MODULE, KERNEL = of_tokens("1.0")
EXPECTED = {"wrong"}
