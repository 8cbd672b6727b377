"""Returns a dataclass of a tensor, an integer and None."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
from dataclasses import dataclass
from typing import Any
@dataclass
class Result:
    value: torch.Tensor
    count: int
    loss: Any = None
class Named(nn.Module):
    def forward(self, x):
        return Result(x * 2, x.dim())
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = "from module import Result\n" + elementwise("Named", "x * 2").replace(
    "        return y\n", "        return Result(y, x.dim())\n"
)
EXPECTED = HONEST
