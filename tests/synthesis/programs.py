"""Random modules of a few tensor operations, as text: what ``test_programs.py`` gives to the synthesizer.

A program is a list of assignments. Sizes are followed beside the text, so that each operation that is drawn is possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from hypothesis import strategies as st

Shape = tuple[int, ...]

#: The most elements of a value: the interpreter takes a program at a time.
MOST_ELEMENTS = 3000
MOST_DIMENSIONS = 4

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn


class Program(nn.Module):
    def forward(self, x, y, chosen, kept):
"""

#: float32 but for ``chosen``, int64 below 3, and ``kept``, bool.
INPUTS: dict[str, Shape] = {"x": (3, 4, 6), "y": (4, 6), "chosen": (5,), "kept": (4, 6)}
_NUMBERS = ("x", "y")

UNARY = (
    "torch.tanh({a})",
    "torch.exp({a}.clamp(-3, 2))",
    "F.gelu({a})",
    "F.leaky_relu({a}, 0.1)",
    "({a} * 0.5 + 1)",
    "torch.sqrt({a}.abs() + 0.1)",
    "torch.where({a} > 0, {a}, 0.3)",
    "({a} / 3)",
    "torch.nan_to_num({a})",
)
REDUCTIONS = ("sum", "mean", "amax", "amin", "var", "std", "logsumexp", "prod", "norm")
ALONG = (
    "torch.softmax({a}, {d})",
    "torch.log_softmax({a}, {d})",
    "torch.cumsum({a}, {d})",
    "torch.cummax({a}, {d}).values",
)
BINARY = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "torch.maximum({a}, {b})", "{a} / ({b}.abs() + 0.5)")


@dataclass
class Program:
    lines: list[str] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=lambda: {name: INPUTS[name] for name in _NUMBERS})

    def add(self, text: str, shape: Shape) -> None:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.shapes[name] = shape

    def results(self) -> list[str]:
        """What no line reads, the last three of them."""
        read = " ".join(line.partition("=")[2] for line in self.lines)
        words = set("".join(c if c.isalnum() else " " for c in read).split())
        return [name for name in self.shapes if name not in words and name not in _NUMBERS][-3:]

    def source(self) -> str:
        body = "".join(f"        {line}\n" for line in self.lines)
        return f"{HEAD}{body}        return ({', '.join(self.results())},)\n"


def _at(shape: Shape, d: int, *sizes: int) -> Shape:
    return (*shape[:d], *sizes, *shape[d + 1 :])


def _reduction(draw: Any, program: Program, a: str, s: Shape, d: int) -> None:
    f = draw(st.sampled_from(REDUCTIONS))
    if f in ("var", "std") and s[d] < 2:
        return
    keep = draw(st.booleans())
    operand = f"torch.tanh({a})" if f == "prod" else a
    program.add(f"torch.{f}({operand}, dim={d}, keepdim={keep})", _at(s, d, *([1] if keep else [])))


def _binary(draw: Any, program: Program, a: str, s: Shape, d: int) -> None:
    b = draw(st.sampled_from(list(program.shapes)))
    try:
        shape = tuple(torch.broadcast_shapes(s, program.shapes[b]))
    except RuntimeError:
        return
    if prod(shape) <= MOST_ELEMENTS:
        program.add(draw(st.sampled_from(BINARY)).format(a=a, b=b), shape)


def _product(draw: Any, program: Program, a: str, s: Shape, d: int) -> None:
    b = draw(st.sampled_from(list(program.shapes)))
    t, text = program.shapes[b], f"{a} @ {b}"
    if len(s) < 2 or len(t) < 2:
        return
    if s[-1] != t[-2]:
        t, text = (*t[:-2], t[-1], t[-2]), f"{a} @ {b}.transpose(-1, -2)"
    try:
        lead = tuple(torch.broadcast_shapes(s[:-2], t[:-2]))
    except RuntimeError:
        return
    if s[-1] == t[-2] and prod((*lead, s[-2], t[-1])) <= MOST_ELEMENTS:
        program.add(text, (*lead, s[-2], t[-1]))


def _arrangement(draw: Any, program: Program, a: str, s: Shape, d: int) -> None:
    kind = draw(
        st.sampled_from(["permute", "unsqueeze", "slice", "cat", "flip", "reshape", "expand", "roll", "pad", "stack"])
    )
    if kind == "permute":
        order = draw(st.permutations(range(len(s))))
        program.add(f"{a}.permute({list(order)})", tuple(s[i] for i in order))
    elif kind == "unsqueeze" and len(s) < MOST_DIMENSIONS:
        program.add(f"{a}.unsqueeze({d})", (*s[:d], 1, *s[d:]))
    elif kind == "slice" and s[d] > 2:
        step = draw(st.sampled_from([1, 2]))
        program.add(f"{a}[{':, ' * d}0:{s[d] - 1}:{step}]", _at(s, d, len(range(0, s[d] - 1, step))))
    elif kind == "cat" and s[d] < 10 and 2 * prod(s) <= MOST_ELEMENTS:
        program.add(f"torch.cat([{a}, {a}.flip({d})], {d})", _at(s, d, 2 * s[d]))
    elif kind == "flip":
        program.add(f"{a}.flip({d})", s)
    elif kind == "roll":
        program.add(f"torch.roll({a}, 1, {d})", s)
    elif kind == "reshape" and d + 1 < len(s):
        shape = (*s[:d], s[d] * s[d + 1], *s[d + 2 :])
        program.add(f"{a}.reshape({list(shape)})", shape)
    elif kind == "expand" and s[d] == 1 and 5 * prod(s) <= MOST_ELEMENTS:
        program.add(f"{a}.expand({list(_at(s, d, 5))})", _at(s, d, 5))
    elif kind == "pad":
        program.add(f"F.pad({a}, (1, 0), value=0.5)", (*s[:-1], s[-1] + 1))
    elif kind == "stack" and len(s) < MOST_DIMENSIONS and 2 * prod(s) <= MOST_ELEMENTS:
        program.add(f"torch.stack([{a}, {a} * 2], {d})", (*s[:d], 2, *s[d:]))


def _choice(draw: Any, program: Program, a: str, s: Shape, d: int) -> None:
    """What reads ``chosen`` or ``kept``: places below 3, and a mask of the shape of ``y``."""
    if draw(st.booleans()) and s[d] >= 3 and prod(s) * 2 <= MOST_ELEMENTS:
        program.add(f"{a}.index_select({d}, chosen)", _at(s, d, INPUTS["chosen"][0]))
    elif s[-2:] == INPUTS["kept"]:
        program.add(f"{a}.masked_fill(kept, -1.0)", s)


_STEPS = (_reduction, _binary, _product, _arrangement, _choice)


@st.composite
def programs(draw: Any) -> Program:
    """A program of up to ten operations, with a result."""
    program = Program()
    for _ in range(draw(st.integers(3, 10))):
        a = draw(st.sampled_from(list(program.shapes)[-4:]))
        s = program.shapes[a]
        if not s:
            continue
        d = draw(st.integers(0, len(s) - 1))
        kind = draw(st.sampled_from(["unary", "along", *_STEPS, _reduction, _binary, _arrangement]))
        if kind == "unary":
            program.add(draw(st.sampled_from(UNARY)).format(a=a), s)
        elif kind == "along":
            program.add(draw(st.sampled_from(ALONG)).format(a=a, d=d), s)
        else:
            kind(draw, program, a, s, d)
    return program
