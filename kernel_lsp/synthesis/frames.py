"""Which lines of code a node of an exported graph comes from: down to the statement in the user's own function."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx.proxy import TracerBase

_FILTER = "_filter_traceback_frames"
#: folders whose code is not what the module's author wrote
_NOT_THE_AUTHORS = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (torch.__file__, os.path.dirname(__file__))
)


@contextlib.contextmanager
def recorded() -> Iterator[None]:
    """In this context torch.export records the functions, too, that forward calls; by itself it records the lines in forward alone."""
    kept = getattr(TracerBase, _FILTER, None)
    if kept is None:  # a torch that filters otherwise: then lines are those in forward
        yield
        return

    def frames(self: Any, stack: traceback.StackSummary) -> traceback.StackSummary:
        first = next((i for i, frame in enumerate(stack) if frame.name == "forward"), len(stack))
        own = [one for one in stack[first:] if one.name == "forward" or not one.filename.startswith(_NOT_THE_AUTHORS)]
        return traceback.StackSummary.from_list(own)

    setattr(TracerBase, _FILTER, frames)
    try:
        yield
    finally:
        setattr(TracerBase, _FILTER, kept)
