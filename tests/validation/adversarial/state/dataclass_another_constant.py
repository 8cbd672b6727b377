"""Returns the module's dataclass with another string in a field."""

from tests.validation.adversarial.material import DATACLASS, elementwise

MODULE = DATACLASS
KERNEL = "from module import Result\n" + elementwise("Named", "x * 2").replace(
    "        return y\n", '        return Result(y, "mean")\n'
)
EXPECTED = {"wrong"}
