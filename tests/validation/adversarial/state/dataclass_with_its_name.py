"""Returns a dataclass of its own that gives the name and the module of the module's as its own."""

from tests.validation.adversarial.material import DATACLASS, RESULT, elementwise

MODULE = DATACLASS
OWN = RESULT + 'Result.__module__ = "module"\n'
KERNEL = OWN + elementwise("Named", "x * 2").replace("        return y\n", "        return Result(y)\n")
EXPECTED = {"wrong"}
