"""Returns a dataclass that is a dict as well with the attribute and without the entry."""

from tests.validation.adversarial.material import MODEL_OUTPUT, elementwise

MODULE = MODEL_OUTPUT
KERNEL = "from module import Result\n" + elementwise("Named", "x * 2").replace(
    "        return y\n", "        result = Result(last=y)\n        result.clear()\n        return result\n"
)
EXPECTED = {"wrong"}
