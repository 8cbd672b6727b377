"""Returns a dataclass of its own, which is called as the module's is and has the same fields."""

from tests.validation.adversarial.material import DATACLASS, elementwise

MODULE = DATACLASS
KERNEL = """
from dataclasses import dataclass
from typing import Any
@dataclass
class Result:
    value: torch.Tensor
    kind: str = "sum"
    loss: Any = None
""" + elementwise("Named", "x * 2").replace("        return y\n", "        return Result(y)\n")
EXPECTED = {"wrong"}
