"""The module and its example where they are validated: on the device, or on the host for the interpreter."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import errors
from kernel_lsp.specimen import building, examples, faking, importing, looking
from kernel_lsp.validation import channel, memory

#: bytes of inputs that are not made for the interpreter, which is given a small part of them anyway
_LARGE = 1 << 30
#: how often the weights are held under the interpreter: as they are, in float64, and by the candidate
_COPIES = 5


@dataclass
class Prepared:
    """A module with its example. ``hollow``: the size of inputs that have no values, for people; else ""."""

    module: torch.nn.Module
    example: examples.Example
    again: Callable[[int], tuple[Any, Any]]  # (args, kwargs) of the user's own function under another seed
    hollow: str = ""


def on_device(
    given: dict[str, Any], before_gpu: Callable[[], None]
) -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    """(module, args, kwargs) of the example, where the candidate runs. ``before_gpu``: as ``prepare`` takes it.

    Raises:
        UserError: importing or building fails.
    """
    ready = prepare(given, before_gpu)
    return ready.module, *moved(ready.example, torch.device(given["device"]))


def prepare(given: dict[str, Any], before_gpu: Callable[[], None]) -> Prepared:
    """Import, construct and make the example of ``given``'s class.

    ``before_gpu`` is called once CUDA knows its devices, and before one is used.

    Raises:
        HostMemoryShort: there is too little for what it copies.
        UserError: importing, constructing or making the example fails.
    """
    path, class_name, device = given["path"], given["class_name"], given["device"]
    where = torch.device("cpu" if device == "interpreter" else device)
    user_module, cls = importing.load(path, class_name)
    if where.type == "cuda":
        torch.set_num_threads(given["threads"])
        _start_cuda(device, before_gpu)
    hollow = ""
    if device == "interpreter":
        _check_memory(given)
        hollow = _too_large(given)

    def make(seed: int) -> examples.Example:
        number = int(given.get("example") or 0)
        return examples.resolve(user_module, cls, path, class_name, given.get("inputs"), seed, number=number)

    def again(seed: int) -> tuple[Any, Any]:
        with torch.device(where) if where.type == "cuda" else contextlib.nullcontext():
            other = make(seed)
        return other.args, other.kwargs

    if hollow:
        example = looking.example_of(given, user_module, cls, faking.mode())
        example.args, example.kwargs = pytree.tree_map(faking.hollow, (example.args, example.kwargs))
        module = building.construct(cls, example, path, class_name)
    else:
        try:  # made where they are needed: random numbers for a large input take long on the CPU
            with torch.device(where):
                example = make(0)
                module = building.construct(cls, example, path, class_name)
        except errors.UserError:
            if where.type == "cpu":
                raise
            example = make(0)
            module = building.construct(cls, example, path, class_name)
    _check_inputs(example, class_name, path)
    converted = examples.conversion(module, example)
    return Prepared(module.to(where, converted).train(bool(given.get("training"))), example, again, hollow)


def moved(example: examples.Example, where: torch.device) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example's (args, kwargs) on a device, with their strides."""
    args, kwargs = pytree.tree_map(
        lambda t: channel.moved(t.detach(), where) if isinstance(t, torch.Tensor) else t, (example.args, example.kwargs)
    )
    return tuple(args), kwargs


def _bytes(specs: list[dict[str, Any]]) -> int:
    return sum(math.prod(spec["shape"]) * getattr(torch, spec["dtype"]).itemsize for spec in specs)


def _too_large(given: dict[str, Any]) -> str:
    """The size of the example's inputs, where only a part of them can be of use here; else ""."""
    known = given.get("specimen") or {}
    count = _bytes(known.get("inputs") or [])
    return memory.text(count) if count > _LARGE and known.get("fake") and known.get("dynamic") else ""


def _check_memory(given: dict[str, Any]) -> None:
    known = given.get("specimen") or {}
    inputs = 0 if _too_large(given) else _bytes(known.get("inputs") or [])
    needed, there = _COPIES * _bytes(known.get("parameters") or []) + 3 * inputs, memory.free([])
    if needed > max(there, _LARGE):
        raise errors.HostMemoryShort(
            class_name=given["class_name"], needed=memory.text(needed), there=memory.text(there)
        )


def _start_cuda(device: str, before_gpu: Callable[[], None]) -> None:
    try:
        torch.cuda.init()
        before_gpu()
        torch.cuda.set_device(torch.device(device))
    except (RuntimeError, AssertionError) as error:
        detail = str(error).splitlines()[0]
        raise errors.NoSuchDevice(device=device, interpreter=sys.executable, detail=detail) from None


def _check_inputs(example: examples.Example, class_name: str, path: str) -> None:
    try:
        described = channel.describe((list(example.args), example.kwargs), [])
    except channel.Opaque as error:
        raise errors.InputsNotSupported(path=path, class_name=class_name, kind=f"a {error}") from None
    if (kind := channel.not_rebuilt(described)) is not None:
        raise errors.InputsNotSupported(path=path, class_name=class_name, kind=f"a {kind}")
