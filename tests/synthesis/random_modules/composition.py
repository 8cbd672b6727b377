"""A random module as text, drawn from a seed: a few inputs, submodules, and statements of which each reads what is before it.

Each statement is carried out as it is drawn, on small inputs: so what torch refuses is no part of a module, and shapes and dtypes
need not be followed beside the text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.synthesis.random_modules.inputs import Input, drawn_inputs, example, read_layout

#: The most elements of a value: the interpreter takes a program at a time.
MOST_ELEMENTS = 1600
MOST_DIMENSIONS = 6
MOST_RESULTS = 4
_TRIES = 80

_TEXT = """\
import torch
import torch.nn.functional as F
from torch import nn


class Composition(nn.Module):
    def __init__(self):
        super().__init__()
{modules}

    def forward(self, {inputs}):
{statements}
        return {result}
"""

_DTYPES = {torch.float32: 14, torch.float64: 2, torch.float16: 1, torch.bfloat16: 1}


class Impossible(Exception):
    """What was drawn cannot be: torch refuses it, or it is too large."""


#: Draws a statement and adds it to a composition. Raises Impossible.
Step = Callable[["Composition"], None]


@dataclass
class Composition:
    """``values``: what the statements before have made, by name, and what their text may name besides."""

    seed: int
    random: random.Random
    dtype: torch.dtype = torch.float32
    training: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, Input] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    result: str = ""

    # -- What was drawn before.

    def kind(self, text: str) -> str:
        """Of what ``text`` computes: "float", "bool" or "integer"."""
        dtype = self.value(text).dtype
        return "float" if dtype.is_floating_point else "bool" if dtype == torch.bool else "integer"

    def value(self, text: str) -> Any:
        with torch.no_grad():
            return eval(text, self.values)

    def shape(self, text: str) -> tuple[int, ...]:
        return tuple(self.value(text).shape)

    # -- Drawing.

    def one_of(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def tensor(self, kind: str | None = None, least: int = 0, most: int = MOST_DIMENSIONS) -> str:
        """The name of a tensor of ``kind`` with ``least`` to ``most`` dimensions, rather one of the last."""
        found = [
            name
            for name in self.tensors
            if least <= self.values[name].dim() <= most and kind in (None, self.kind(name))
        ]
        if not found:
            raise Impossible
        recent = [name for name in found if name in self.tensors[-self.one_of(1, 3) :]]
        return self.random.choice(recent if recent and self.chance(0.8) else found)

    def float_tensor(self, least: int = 0, most: int = MOST_DIMENSIONS) -> str:
        try:
            return self.tensor("float", least, most)
        except Impossible:
            return f"{self.tensor(None, least, most)}.float()"

    def dimension(self, text: str, negative: bool = False) -> int:
        rank = len(self.shape(text))
        if not rank:
            raise Impossible
        return self.random.randint(-rank if negative else 0, rank - 1)

    # -- Adding.

    def add(self, text: str) -> str:
        """A statement that names what ``text`` computes; the name. Raises Impossible."""
        value = self._tried(text)
        if not isinstance(value, torch.Tensor) or value.is_complex():
            raise Impossible
        if value.numel() > MOST_ELEMENTS or value.dim() > MOST_DIMENSIONS:
            raise Impossible
        if not value.numel() and not self.chance(0.02):
            raise Impossible
        if value.isnan().any() and not self.chance(0.2):
            raise Impossible
        return self._named(text, value, self.tensors)

    def add_number(self, text: str) -> str:
        value = self._tried(text)
        if not isinstance(value, int | float | bool):
            raise Impossible
        return self._named(text, value, self.numbers)

    def change(self, text: str) -> None:
        """A statement that changes tensors in place. Raises Impossible."""
        try:
            with torch.no_grad():
                exec(text, self.values)
        except Exception as refused:
            raise Impossible(str(refused)) from refused
        self.statements.append(text)

    def module(self, text: str) -> str:
        """A submodule; what forward names it."""
        try:
            torch.manual_seed(1)
            made = eval(text, {"nn": nn, "torch": torch})
        except Exception as refused:
            raise Impossible(str(refused)) from refused
        name = f"m{len(self.modules)}"
        if isinstance(made, nn.Module):
            made = made.train(self.training).to(self.dtype)
        setattr(self.values["self"], name, made)
        self.modules.append(f"self.{name} = {text}")
        return f"self.{name}"

    def _tried(self, text: str) -> Any:
        try:
            return self.value(text)
        except Exception as refused:
            raise Impossible(str(refused)) from refused

    def _named(self, text: str, value: Any, names: list[str]) -> str:
        name = f"v{len(self.tensors) + len(self.numbers)}"
        self.statements.append(f"{name} = {text}")
        self.values[name] = value
        names.append(name)
        return name

    # -- The whole.

    def unread(self) -> list[str]:
        """What no statement reads, the last of them."""
        read = set(re.findall(r"\w+", " ".join(statement.split(" = ", 1)[-1] for statement in self.statements)))
        return [name for name in self.values if re.fullmatch(r"v\d+", name) and name not in read][-MOST_RESULTS:]

    def source(self) -> str:
        return source(self.modules, list(self.inputs), self.statements, self.result)


def source(modules: list[str], inputs: list[str], statements: list[str], result: str) -> str:
    indented = ["\n".join(f"        {line}" for line in lines) for lines in (modules or ["pass"], statements)]
    return _TEXT.format(modules=indented[0], inputs=", ".join(inputs), statements=indented[1], result=result)


def _result(c: Composition) -> str:
    """What forward returns: a tensor, or several in a tuple, a list, a dict, a tuple in a tuple, or beside numbers."""
    names = c.unread()
    if len(names) == 1 and c.chance(0.8):
        return names[0]
    joined = ", ".join(names)
    if c.chance(0.7):
        return f"({joined},)"
    tensor = c.random.choice(c.tensors)
    return c.one_of(
        f"[{joined}]",
        f"{{{', '.join(f'{name!r}: {name}' for name in names)}}}",
        f"({names[0]}, ({joined},))",
        f"({joined}, {tensor})",
        f"({joined}, {tensor}.shape[0])" if c.values[tensor].dim() else f"({joined}, None)",
        f"({joined}, {tensor}.flatten())",
    )


def drawn(seed: int, steps: dict[Step, float]) -> Composition:
    """The composition of a seed. ``steps``: what it may be made of, and how often."""
    c = Composition(seed, random.Random(seed))
    c.dtype = c.random.choices(list(_DTYPES), list(_DTYPES.values()))[0]
    c.training = c.chance(0.15)
    c.sizes, c.inputs = drawn_inputs(c.random)
    tensors = dict(zip(c.inputs, example(c.inputs, c.sizes, c.dtype, seed), strict=True))
    if c.chance(0.1):
        tensors = {name: read_layout(tensor, c.random) for name, tensor in tensors.items()}
    c.tensors = list(tensors)
    c.values = {"torch": torch, "F": F, "nn": nn, "self": nn.Module(), **tensors}
    c.values["self"].training = c.training
    wanted = c.random.randint(2, 8)
    for _ in range(_TRIES):
        if len(c.statements) >= wanted:
            break
        before = len(c.modules)
        try:
            c.random.choices(list(steps), list(steps.values()))[0](c)
        except Impossible:
            del c.modules[before:]
    if not c.unread():
        c.add(f"{c.tensors[-1]}.clone()")
    c.result = _result(c)
    read = set(re.findall(r"\w+", " ".join([*c.statements, c.result])))
    c.inputs = {name: of for name, of in c.inputs.items() if name in read} or {"x": c.inputs["x"]}
    return c
