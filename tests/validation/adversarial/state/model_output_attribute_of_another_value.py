"""Returns a dataclass that is a dict as well, whose attribute holds another tensor than the entry of its name."""

from tests.validation.adversarial.material import MODEL_OUTPUT, elementwise

MODULE = MODEL_OUTPUT
KERNEL = "from module import Result\n" + elementwise("Named", "x * 2").replace(
    "        return y\n",
    "        result = Result(last=y)\n        object.__setattr__(result, 'last', x)\n        return result\n",
)
EXPECTED = {"wrong"}
