"""Returns a frozen dataclass with keywords only, and another one in it, with a string, a float and None."""

from tests.validation.adversarial.material import HONEST, elementwise

MODULE = """
from dataclasses import dataclass
from typing import Any
@dataclass(frozen=True, kw_only=True, slots=True)
class Inner:
    value: torch.Tensor
    kind: str = "double"
@dataclass(frozen=True, kw_only=True)
class Result:
    inner: Inner
    scale: float = 2.0
    loss: Any = None
class Named(nn.Module):
    def forward(self, x):
        return Result(inner=Inner(value=x * 2)), 3
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = "from module import Inner, Result\n" + elementwise("Named", "x * 2").replace(
    "        return y\n", "        return Result(inner=Inner(value=y)), 3\n"
)
EXPECTED = HONEST
