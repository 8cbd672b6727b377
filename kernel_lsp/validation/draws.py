"""The random numbers that a call of eager draws, given to the same module in float64, which would draw others by itself.

A generator gives other numbers for float64 than for float32 from the same state. So what each operator drew is recorded,
and a call in float64 is given it at the same places. Operators whose result is drawn and computed in one (attention with
dropout, a sample of the gamma distribution) cannot be replayed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: operators that give numbers which do not depend on the rounding of what they are given
_GIVES = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("bernoulli", "multinomial", "poisson", "binomial"),
}
#: those that fill their first argument with such numbers, from parameters that are Python numbers or a probability
_FILLS = {"uniform_", "normal_", "bernoulli_", "exponential_", "geometric_", "cauchy_", "log_normal_", "random_"}
_DROPOUT = "native_dropout"


class NotReplayable(Exception):
    """The call in float64 does not draw what eager drew, or in a way that cannot be replayed."""


class Recording(TorchDispatchMode):
    """Within it, what is drawn is kept in ``drawn`` as (operator, tensor), in order."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[tuple[str, torch.Tensor | None]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _may_draw(func):
            return func(*args, **kwargs)
        name = _name(func)
        if name in _GIVES | _FILLS:
            out = func(*args, **kwargs)
            self.drawn.append((name, out.clone()))
            return out
        before = _states()
        out = func(*args, **kwargs)
        if _drew(before):
            self.drawn.append((name, out[1].clone() if name == _DROPOUT else None))
        return out


class Replay(TorchDispatchMode):
    """Within it, operators that draw give what ``drawn`` has. ``finish`` says whether all of it was asked for.

    Raises:
        NotReplayable: an operator draws that is not the next one of ``drawn``, or whose part of drawing is unknown.
    """

    def __init__(self, drawn: list[tuple[str, torch.Tensor | None]]) -> None:
        super().__init__()
        self.drawn = drawn
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _may_draw(func):
            return func(*args, **kwargs)
        name = _name(func)
        if name not in _GIVES | _FILLS | {_DROPOUT}:
            before = _states()
            out = func(*args, **kwargs)
            if _drew(before):
                raise NotReplayable(name)
            return out
        if name == _DROPOUT and (args[2] is False or args[1] == 0):
            return func(*args, **kwargs)
        if self.count >= len(self.drawn) or self.drawn[self.count][0] != name:
            raise NotReplayable(name)
        kept = self.drawn[self.count][1]
        self.count += 1
        if kept is None or "out" in kwargs:
            raise NotReplayable(name)
        if name in _FILLS:
            _same_shape(args[0], kept, name)
            return args[0].copy_(kept)
        if name == _DROPOUT:
            _same_shape(args[0], kept, name)
            scale = 0.0 if args[1] == 1 else 1 / (1 - args[1])
            return args[0] * kept.to(args[0].dtype) * scale, kept
        own = func(*args, **kwargs)  # for its dtype and place: the numbers are not used
        _same_shape(own, kept, name)
        return own.copy_(kept)

    def finish(self) -> None:
        """Check that every number that eager drew was asked for.

        Raises:
            NotReplayable: eager drew more.
        """
        if self.count != len(self.drawn):
            raise NotReplayable(self.drawn[self.count][0])


def _name(func: Any) -> str:
    return str(func.overloadpacket.__name__)


def _may_draw(func: Any) -> bool:
    """Many that may draw do not: a recurrence or attention without dropout."""
    return torch.Tag.nondeterministic_seeded in func.tags


def _states() -> list[torch.Tensor]:
    found = [torch.get_rng_state()]
    return [*found, torch.cuda.get_rng_state()] if torch.cuda.is_initialized() else found


def _drew(before: list[torch.Tensor]) -> bool:
    return not all(map(torch.equal, before, _states()))


def _same_shape(mine: torch.Tensor, kept: torch.Tensor, name: str) -> None:
    if mine.shape != kept.shape:
        raise NotReplayable(name)
