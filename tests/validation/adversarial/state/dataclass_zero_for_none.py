"""Returns the module's dataclass with a number in the field that is None."""

from tests.validation.adversarial.material import DATACLASS, elementwise

MODULE = DATACLASS
KERNEL = "from module import Result\n" + elementwise("Named", "x * 2").replace(
    "        return y\n", "        return Result(y, loss=0)\n"
)
EXPECTED = {"wrong"}
