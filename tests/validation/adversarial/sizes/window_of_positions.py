"""Sums all rows, where the module sums a window that is longer than the example."""

from tests.validation.adversarial.material_of_integers import windowed

MODULE, KERNEL = windowed("others < length")
EXPECTED = {"wrong"}
