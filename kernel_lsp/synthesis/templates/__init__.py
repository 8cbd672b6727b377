"""Kernel templates: plain functions from a planned kernel to its source. One file per way of tiling."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from ..emit import Arguments
from ..graph import Value
from ..index import Domain


@dataclass
class KernelSource:
    """A kernel's text and what its launch needs. ``blocks`` are constexpr arguments with their Python on the host."""

    name: str
    body: list[str]
    arguments: Arguments
    grid: str
    blocks: dict[str, str] = field(default_factory=dict)
    num_warps: int = 4
    num_stages: int | None = None
    prepare: list[str] = field(default_factory=list)  # host statements before the launch
    library: bool = False
    tiling: str = ""  # one sentence for the docstring
    requires: list[str] = field(default_factory=list)  # limits on sizes, as Python on the host

    def text(self, docstring: str) -> str:
        """The kernel's definition."""
        parameters = [
            *self.arguments.pointers.values(),
            *self.arguments.outputs.values(),
            *(name for name, _ in self.arguments.sizes.values()),
            *(name for name, _ in self.arguments.scalars.values()),
            *(f"{name}: tl.constexpr" for name in self.blocks),
        ]
        lines = ["@triton.jit", f"def {self.name}({', '.join(parameters)}):", f'    """{docstring}"""']
        return "\n".join(lines + [f"    {line}" if line else "" for line in self.body])

    def launch(self, host: dict[Value, str]) -> list[str]:
        """Host statements that run it."""
        arguments = [
            *(host[v] for v in self.arguments.pointers),
            *(host[v] for v in self.arguments.outputs),
            *(text for _, text in self.arguments.sizes.values()),
            *(text for _, text in self.arguments.scalars.values()),
            *(f"{name}={text}" for name, text in self.blocks.items()),
            f"num_warps={self.num_warps}",
        ]
        if self.num_stages is not None:
            arguments.append(f"num_stages={self.num_stages}")
        return [*self.prepare, f"{self.name}[({self.grid},)]({', '.join(arguments)})"]


def product(sizes: list[sympy.Expr]) -> sympy.Expr:
    return sympy.expand(sympy.prod(sizes)) if sizes else sympy.Integer(1)


def total(domain: Domain, atoms: list[sympy.Symbol]) -> sympy.Expr:
    return product([domain.size[a] for a in atoms])


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()
