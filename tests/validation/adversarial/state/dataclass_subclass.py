"""Returns a class that is derived from the module's dataclass."""

from tests.validation.adversarial.material import DATACLASS, elementwise

MODULE = DATACLASS
KERNEL = "import module\nclass Result(module.Result):\n    pass\n" + elementwise("Named", "x * 2").replace(
    "        return y\n", "        return Result(y)\n"
)
EXPECTED = {"wrong"}
