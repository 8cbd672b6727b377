"""Which of several envelopes holds for a call: heard in the call itself, so that a candidate does nothing outside of it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

_ENVELOPE = "_in_envelope"


@contextlib.contextmanager
def noted(module: torch.nn.Module) -> Iterator[list[int]]:
    """The numbers, from 1, of the envelopes that are found to hold in calls within the context; none of a class with one.

    ``module`` is a candidate's: ``_in_envelope`` is its first envelope, ``_in_envelope_2`` its second.
    """
    held: list[int] = []
    names = [name for name in dir(type(module)) if name == _ENVELOPE or _number(name)]
    if len(names) < 2:
        yield held
        return

    def listening(envelope: Callable[..., Any], number: int) -> Callable[..., Any]:
        @functools.wraps(envelope)
        def asked(*args: Any, **kwargs: Any) -> Any:
            holds = envelope(*args, **kwargs)
            if holds:
                held.append(number)
            return holds

        return asked

    listeners = {name: listening(getattr(module, name), _number(name) or 1) for name in names}
    module.__dict__.update(listeners)
    try:
        yield held
    finally:
        for name in listeners:
            module.__dict__.pop(name, None)


def _number(name: str) -> int:
    """2 for ``_in_envelope_2``; 0 for what is not called like that."""
    number = name.removeprefix(f"{_ENVELOPE}_")
    return int(number) if number != name and number.isdecimal() else 0
