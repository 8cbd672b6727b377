"""Returns a dataclass of its own, which is called as the module's is and has the same fields."""

from tests.validation.adversarial.material import DATACLASS, RESULT, elementwise

MODULE = DATACLASS
KERNEL = RESULT + elementwise("Named", "x * 2").replace("        return y\n", "        return Result(y)\n")
EXPECTED = {"wrong"}
