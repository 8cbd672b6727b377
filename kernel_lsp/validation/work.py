"""What calls of a module cost, told from the operators that they run: the same on a busy machine as on an idle one.

What a validation looks at must not depend on how fast it happens to go. So a search is given a number of seconds of a usual machine, and each
call takes off what it should take there.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

#: seconds on a usual machine: of a call itself, with the module's state put back and the answers compared; of one operator in it
_CALL, _OPERATOR = 5e-4, 1.2e-5
#: of one element that an operator gives, and of one operation of a product; by the device's type
_ELEMENT = {"cpu": 6e-10, "cuda": 5e-12}
_OPERATION = {"cpu": 1e-11, "cuda": 1e-13}
#: seconds of the clock for one budget, whatever was done in them: for a module whose operators take far longer than they should
_LAST_RESORT = 15.0


@dataclass
class Work:
    """What the operators of a call have done."""

    operators: int = 0
    elements: int = 0  # that they gave
    operations: int = 0  # of products and convolutions: a multiplication and an addition are two
    largest: int = 0  # elements of the largest tensor that one gave

    def note(self, func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        """Add an operator that has run. Views count as operators, not by their elements."""
        self.operators += 1
        is_view, formula = _kind(func)
        if is_view:
            return
        leaves = [out] if isinstance(out, torch.Tensor) else pytree.tree_leaves(out)
        given = [t.numel() for t in leaves if isinstance(t, torch.Tensor)]
        self.elements += sum(given)
        self.largest = max([self.largest, *given])
        if formula is not None:
            with contextlib.suppress(Exception):  # for arguments that the formula does not know
                self.operations += int(formula(*args, **kwargs, out_val=out))

    def seconds(self, device: str) -> float:
        """What such a call takes on a usual machine. ``device``: the type of the device, "cpu" or "cuda"."""
        each = _OPERATOR * self.operators + _ELEMENT.get(device, 0.0) * self.elements
        return _CALL + each + _OPERATION.get(device, 0.0) * self.operations


@functools.cache
def _kind(func: Any) -> tuple[bool, Callable[..., Any] | None]:
    """Whether an operator gives a view of what it is given; how many operations it makes, where torch knows a formula."""
    if not isinstance(func, torch._ops.OpOverload):  # torch.cond, flex_attention
        return False, None
    is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
    return is_view, flop_registry.get(func.overloadpacket)


@dataclass
class Budget:
    """Seconds of a usual machine that may be spent on something, and what was."""

    most: float
    spent: float = 0.0
    clock: float = 0.0  # seconds that it took here

    @property
    def cut_short(self) -> bool:
        """Whether the clock alone ended it, which a busy machine may make it do."""
        return self.clock > _LAST_RESORT

    def has(self, seconds: float, share: float = 1.0) -> bool:
        """Whether that much is left of a share of it."""
        return self.spent + seconds <= share * self.most and not self.cut_short

    @contextlib.contextmanager
    def spending(self, seconds: float = 0.0) -> Iterator[None]:
        """Spend that much on what is done within the context."""
        self.spent += seconds
        began = time.monotonic()
        try:
            yield
        finally:
            self.clock += time.monotonic() - began
