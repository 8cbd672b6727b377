"""The states of every generator that a forward may draw random numbers from: torch's, Python's and numpy's."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch


def seed(number: int) -> None:
    """Put all of them into the state that follows from ``number``."""
    torch.manual_seed(number)
    random.seed(number)
    numpy.random.seed(number)


@contextlib.contextmanager
def other() -> Iterator[None]:
    """Within this context the generators are in other states than before, whatever was drawn."""
    random.seed(random.random() + 1)
    numpy.random.seed(random.randrange(1 << 31))
    torch.manual_seed(random.randrange(1 << 31))
    yield


def state() -> list[Any]:
    """Something that is equal as long as no random number was drawn."""
    of_numpy = numpy.random.get_state(legacy=False)["state"]
    found: list[Any] = [torch.get_rng_state().tolist(), random.getstate()]
    found += [of_numpy["key"].tobytes(), of_numpy["pos"]]
    if torch.cuda.is_initialized():
        found.append(torch.cuda.get_rng_state().tolist())
    return found
