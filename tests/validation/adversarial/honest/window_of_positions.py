"""Sums a window of rows that is longer than the example."""

from tests.validation.adversarial.material import HONEST
from tests.validation.adversarial.material_of_integers import windowed

MODULE, KERNEL = windowed("(others > at - 100) & (others < at + 100)")
EXPECTED = HONEST
