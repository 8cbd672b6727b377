"""Autocast, which a program in mixed precision switches on around its calls: eager's products then give half results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

#: the devices that it is switched on for: under the interpreter a kernel may ask for either
_DEVICES = ("cpu", "cuda")


@contextlib.contextmanager
def on(dtype: str) -> Iterator[None]:
    """Within this context autocast to ``dtype`` ("bfloat16") is on, without its cache of converted weights; "": nothing changes.

    The flags are set by themselves: without a GPU ``torch.autocast("cuda")`` would leave its own off.
    """
    if not dtype:
        yield
        return
    before = [(d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in _DEVICES]
    cached = torch.is_autocast_cache_enabled()
    torch.autocast_increment_nesting()
    torch.set_autocast_cache_enabled(False)  # the weights may be others in the next call
    for device in _DEVICES:
        torch.set_autocast_enabled(device, True)
        torch.set_autocast_dtype(device, getattr(torch, dtype))
    try:
        yield
    finally:
        for device, enabled, kind in before:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, kind)
        torch.set_autocast_cache_enabled(cached)
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
