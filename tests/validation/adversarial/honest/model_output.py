"""Returns a dataclass that is a dict as well, as those of transformers are."""

from tests.validation.adversarial.material import HONEST, MODEL_OUTPUT, elementwise

MODULE = MODEL_OUTPUT
KERNEL = "from module import Result\n" + elementwise("Named", "x * 2").replace(
    "        return y\n", "        return Result(last=y)\n"
)
EXPECTED = HONEST
