"""How forward is declared, and the conditions on what it is given beside tensors."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .errors import Unwritable
from .module_settings import literal, setting

#: names that every generated class uses
_USED = frozenset(["torch", "type", "super"])


class Signature:
    """How forward is declared, and Python for each tensor that it is given; conditions for what is no tensor.

    ``parameters``: as declared, without self; ``names``: as passed on; ``tensors``: (Python, tensor) in the order of the declaration.

    Raises:
        Unwritable: no condition can be written for an argument or a default.
    """

    def __init__(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.parameters, self.names = _parameters(module, args, kwargs)
        if hidden := sorted(_USED & {*inspect.signature(module.forward).parameters}):
            raise Unwritable(
                "forward", f"its argument {hidden[0]} hides a name that the generated class uses; rename it"
            )
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        leaves: list[tuple[str, torch.Tensor]] = []
        self.conditions: list[str] = []
        order = [*inspect.signature(module.forward).parameters]
        given = {**bound.arguments}
        for name in order:
            if name in given:
                self._walk(name, given[name], leaves)
            else:
                self._absent(name, inspect.signature(module.forward).parameters[name])
        self.tensors: list[tuple[str, torch.Tensor]] = leaves
        self.flat = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]

    def flattened(self, count: int) -> list[str]:
        """Python for each tensor in the order of the flattened call, as an exported graph has its ``count`` arguments.

        Raises:
            Unwritable: they are not as many.
        """
        place = {id(leaf): text for text, leaf in self.tensors}
        if count != len(self.flat) or len(self.tensors) != len(self.flat):
            raise Unwritable("forward", "its arguments could not be matched with the exported graph")
        return [place[id(leaf)] for leaf in self.flat]

    def _walk(self, text: str, value: Any, leaves: list[tuple[str, torch.Tensor]]) -> None:
        if isinstance(value, torch.Tensor):
            leaves.append((text, value))
        elif isinstance(value, list | tuple) and type(value) in (list, tuple):
            self.conditions.append(f"isinstance({text}, {type(value).__name__}) and len({text}) == {len(value)}")
            for i, item in enumerate(value):
                self._walk(f"{text}[{i}]", item, leaves)
        elif type(value) is dict:
            self.conditions.append(f"isinstance({text}, dict) and [*{text}] == {literal([*value])}")
            for key, item in value.items():
                self._walk(f"{text}[{key!r}]", item, leaves)
        elif value is None or isinstance(value, bool):
            self.conditions.append(f"{text} is {value}")
        elif isinstance(value, int | float | str):
            # of the same type: 0.0 is not 0 (another result dtype), and a tensor may be equal to a number
            self.conditions.append(f"type({text}) is {type(value).__name__} and {setting(text, value)}")
        else:
            raise Unwritable("forward", f"the argument {text} is a {type(value).__name__}")

    def _absent(self, name: str, parameter: inspect.Parameter) -> None:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            self.conditions.append(f"not {name}")
        elif parameter.default is None or isinstance(parameter.default, bool):
            self.conditions.append(f"{name} is {parameter.default}")
        else:
            self._walk(name, parameter.default, [])


def _parameters(module: torch.nn.Module, args: Any, kwargs: Any) -> tuple[list[str], list[str]]:
    """forward's parameters as declared, and as passed on to super().forward."""
    declared, passed = [], []
    star = False
    for name, p in inspect.signature(module.forward).parameters.items():
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            declared.append(f"*{name}")
            passed.append(f"*{name}")
            star = True
            continue
        if p.kind is inspect.Parameter.VAR_KEYWORD:
            declared.append(f"**{name}")
            passed.append(f"**{name}")
            continue
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            declared.append("*")
            star = True
        default = p.default
        if default is inspect.Parameter.empty:
            declared.append(name)
        elif default is None or isinstance(default, bool | int | float | str):
            declared.append(f"{name}={literal(default)}")
        else:
            raise Unwritable("forward", f"the default of {name} cannot be written down")
        passed.append(f"{name}={name}" if p.kind is inspect.Parameter.KEYWORD_ONLY else name)
    return declared, passed
