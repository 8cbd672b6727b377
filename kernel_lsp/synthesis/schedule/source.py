"""Kernel templates: plain functions from a planned kernel to its source. One file per way of tiling."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from ..graph.names import Names
from ..graph.value import Value
from ..kernel.arguments import Arguments
from ..kernel.domain import Domain


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
            *(f"{name}: tl.constexpr" for name in self.constants()),
        ]
        lines = ["@triton.jit", f"def {self.name}({', '.join(parameters)}):", f'    """{docstring}"""']
        return "\n".join(lines + [f"    {line}" if line else "" for line in self.body])

    def constants(self) -> list[str]:
        """The names of its constexpr parameters, in order."""
        divisors = (name for name, _ in self.arguments.divisors.values())
        return [*self.arguments.static.values(), *divisors, *self.blocks]

    def launch(self, host: dict[Value, str], names: Names, function: KernelSource) -> list[str]:
        """Host statements that run it: compound sizes get a variable first.

        ``function``: this kernel, or one that differs from it in names alone and is launched in its place.
        """
        prepare: list[str] = []
        grid, blocks, sizes = self.grid, dict(self.blocks), []
        for name, text in self.arguments.sizes.values():
            if " " in text:
                variable = names.fresh(name)
                prepare.append(f"{variable} = {text}")
                grid = grid.replace(text, variable)
                blocks = {key: value.replace(text, variable) for key, value in blocks.items()}
                text = variable
            sizes.append(text)
        constants = [
            *map(str, self.arguments.static),
            *(text for _, text in self.arguments.divisors.values()),
            *blocks.values(),
        ]
        arguments = [
            *(host[v] for v in self.arguments.pointers),
            *(host[v] for v in self.arguments.outputs),
            *sizes,
            *(text for _, text in self.arguments.scalars.values()),
            *(f"{name}={text}" for name, text in zip(function.constants(), constants, strict=True)),
            f"num_warps={self.num_warps}",
        ]
        if self.num_stages is not None:
            arguments.append(f"num_stages={self.num_stages}")
        return [*prepare, f"{function.name}[({grid},)]({', '.join(arguments)})"]


def product(sizes: list[sympy.Expr]) -> sympy.Expr:
    return sympy.expand(sympy.prod(sizes)) if sizes else sympy.Integer(1)


def total(domain: Domain, atoms: list[sympy.Symbol]) -> sympy.Expr:
    return product([domain.size[a] for a in atoms])


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()
