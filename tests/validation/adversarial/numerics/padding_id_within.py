"""Forgets that the rows of one index are halved, which lies between those of the examples."""

from tests.validation.adversarial.material_of_integers import of_tokens

_OTHERS = "(lambda ids: ids + (ids == 500))(torch.randint(0, 1000, (4, 24)))"
MODULE, KERNEL = of_tokens("1.0", _OTHERS)
EXPECTED = {"wrong"}
