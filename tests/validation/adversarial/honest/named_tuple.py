"""Returns a named tuple of a tensor, an integer, None and a string."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
from typing import Any, NamedTuple
class Result(NamedTuple):
    value: torch.Tensor
    count: int
    loss: Any
    kind: str
class Named(nn.Module):
    def forward(self, x):
        return Result(x * 2, x.dim(), None, "double")
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = "from module import Result\n" + elementwise("Named", "x * 2").replace(
    "        return y\n", '        return Result(y, x.dim(), None, "double")\n'
)
EXPECTED = HONEST
