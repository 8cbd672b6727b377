"""Returns a dataclass of its own that gives the name and the module of the module's as its own."""

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
Result.__module__ = "module"
""" + elementwise("Named", "x * 2").replace("        return y\n", "        return Result(y)\n")
EXPECTED = {"wrong"}
