"""Gives 0 for a label that is ignored, which no example has."""

from tests.validation.adversarial.material import HONEST
from tests.validation.adversarial.material_of_integers import of_labels

MODULE, KERNEL = of_labels("0.0")
EXPECTED = HONEST
