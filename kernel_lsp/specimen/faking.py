"""Tensors that take no memory: shapes, dtypes and strides without elements, for what does not ask for values.

A fake tensor raises where its value is asked for (``.item()``, ``.numpy()``, ``if``), so that nothing is learned from
elements that were never computed. A constant made from Python data (``torch.tensor(2.0)``) keeps its value.
"""

from __future__ import annotations

import contextlib
import mmap
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from kernel_lsp.synthesis.recurrence import Shapes


class NeedsValues(Exception):
    """Fake tensors do not do for a module; what is asked has to be found out with real ones."""


class OtherDevice(Exception):
    """A tensor was asked for on a device that may be absent: only a real attempt finds out."""


class _OnTheCpuAlone(TorchDispatchMode):
    """A fake tensor can be on a GPU that is not there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if device is not None and torch.device(device).type not in ("cpu", "meta"):
            raise OtherDevice(str(device))
        return func(*args, **kwargs)


class _OnGpusThatAreHere(TorchFunctionMode):
    """A forward that asks for a GPU which is not there does not run, with fake tensors either."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for device in _devices_asked(func, args, kwargs):
            if _is_missing_gpu(device):
                raise OtherDevice(str(device))
        return func(*args, **kwargs)


def _devices_asked(func: Any, args: Any, kwargs: Any) -> Iterator[torch.device]:
    """The devices that a call names; what names none that torch knows is left to the call."""
    asked = [kwargs.get("device"), *(args[1:2] if func in (torch.Tensor.to, torch.Tensor.cuda) else ())]
    if func is torch.Tensor.cuda and all(device is None for device in asked):
        asked = ["cuda"]
    for device in asked:
        if isinstance(device, str | torch.device):
            yield torch.device(device)
        elif isinstance(device, int) and not isinstance(device, bool) and device >= 0:
            yield torch.device("cuda", device)  # torch.device(0) is no GPU where torch was built without


def _is_missing_gpu(device: torch.device) -> bool:
    return device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()


def mode() -> FakeTensorMode:
    """A mode in which tensors are made without elements; those with elements may take part."""
    return FakeTensorMode(allow_non_fake_inputs=True)


@contextlib.contextmanager
def within(fake: FakeTensorMode | None) -> Iterator[None]:
    """Tensors made in this context are fake and on the CPU; with None nothing is changed."""
    if fake is None:
        yield
        return
    with warnings.catch_warnings(), _converting(), fake, _OnTheCpuAlone():
        warnings.filterwarnings("ignore", message=".*data pointer of FakeTensor")
        yield


@contextlib.contextmanager
def _converting() -> Iterator[None]:
    """``module.half()`` and the like, which swap the elements of a parameter: a fake one cannot be swapped.

    It is replaced instead, by the same one wherever it is shared.
    """
    original = torch.nn.Module._apply
    replaced: dict[int, tuple[Any, Any]] = {}  # the old parameter is kept, so that its id is not used again

    def apply(module: torch.nn.Module, fn: Any, recurse: bool = True) -> torch.nn.Module:
        if not is_fake([*module._parameters.values()]):
            return original(module, fn, recurse)
        for child in module.children() if recurse else ():
            child._apply(fn)
        for name, old in module._parameters.items():
            if old is not None:
                if id(old) not in replaced:
                    replaced[id(old)] = (old, _converted(old, fn))
                module._parameters[name] = replaced[id(old)][1]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = fn(buffer)
        return module

    torch.nn.Module._apply = apply  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.nn.Module._apply = original  # type: ignore[method-assign]


def _converted(old: torch.nn.Parameter, fn: Any) -> torch.nn.Parameter:
    with torch.no_grad():
        new = fn(old)
    return old if new is old else torch.nn.Parameter(new, old.requires_grad and new.is_floating_point())


def is_fake(tree: Any) -> bool:
    """Whether a tensor in the tree has no elements."""
    return any(isinstance(leaf, FakeTensor) for leaf in pytree.tree_leaves(tree))


def run(module: torch.nn.Module, args: Any, kwargs: Any, fake: FakeTensorMode | None = None) -> tuple[Any, int] | None:
    """(outputs as fake tensors, FLOPs of the matmul-like operators), or None where fake tensors do not do.

    ``fake``: the mode that the module or its arguments were made in, if any was fake. The module is left as it was,
    whatever its forward assigns.
    """
    fake = fake or mode()

    def faked(leaf: Any) -> Any:
        return fake.from_tensor(leaf) if isinstance(leaf, torch.Tensor) and not isinstance(leaf, FakeTensor) else leaf

    try:
        args, kwargs = pytree.tree_map(faked, (args, kwargs))
        with (
            kept_as_it_is(module),
            torch.no_grad(),
            fake,
            FlopCounterMode(display=False) as counter,
            Shapes() as recurrent,
            _OnGpusThatAreHere(),
        ):
            outputs = module(*args, **kwargs)
        return outputs, counter.get_total_flops() + recurrent.flops
    except Exception:
        return None


def hollow(leaf: Any) -> Any:
    """A plain tensor of zeros in place of a fake one, in memory that is not there until it is written to.

    A constant keeps its value. What is no fake tensor is handed back.
    """
    if not isinstance(leaf, FakeTensor):
        return leaf
    if leaf.constant is not None:
        plain = leaf.constant.clone()
    elif leaf.numel() == 0:
        plain = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype)
    else:
        count = 1 + sum((n - 1) * stride for n, stride in zip(leaf.shape, leaf.stride(), strict=True))
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        memory = mmap.mmap(-1, count * leaf.element_size(), flags=flags)
        plain = torch.frombuffer(memory, dtype=leaf.dtype, count=count).as_strided(leaf.shape, leaf.stride())
    return torch.nn.Parameter(plain, leaf.requires_grad) if isinstance(leaf, torch.nn.Parameter) else plain


def hollowed(module: torch.nn.Module) -> torch.nn.Module:
    """``module`` with its fake tensors replaced by hollow ones, shared where they were."""
    plain: dict[int, tuple[Any, Any]] = {}
    for part in module.modules():
        for store in (part._parameters, part._buffers, vars(part)):
            for name, value in [*store.items()]:
                if isinstance(value, FakeTensor):
                    store[name] = plain.setdefault(id(value), (value, hollow(value)))[1]  # type: ignore[index]
    return module


@contextlib.contextmanager
def kept_as_it_is(module: torch.nn.Module) -> Iterator[None]:
    """Attributes, buffers and parameters that the context assigns are as before after it."""
    tables = [store for part in module.modules() for store in (vars(part), part._buffers, part._parameters)]
    before = [(store, dict(store)) for store in tables]
    try:
        yield
    finally:
        for store, kept in before:
            if len(store) != len(kept) or any(store.get(name) is not value for name, value in kept.items()):
                store.clear()
                store.update(kept)  # type: ignore[arg-type]
