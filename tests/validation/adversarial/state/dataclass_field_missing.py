"""Returns the module's dataclass without one of its fields."""

from tests.validation.adversarial.material import DATACLASS, elementwise

MODULE = DATACLASS
KERNEL = "from module import Result\n" + elementwise("Named", "x * 2").replace(
    "        return y\n",
    "        result = object.__new__(Result)\n        result.value, result.loss = y, None\n"
    "        if hasattr(Result, 'kind'):\n            del Result.kind\n"
    "        return result\n",
)
EXPECTED = {"wrong"}
