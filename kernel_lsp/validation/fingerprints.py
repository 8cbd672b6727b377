"""What of its process a candidate has no business to change: torch's functions, the user's class, flags, threads.

The comparison is made by identity, with references that were taken before the candidate was imported.
"""

from __future__ import annotations

import builtins
import os
import statistics
import sys
import threading
import time
from operator import is_
from typing import Any, NamedTuple

import torch
import torch.utils.benchmark

from kernel_lsp.validation.device_memory import cache_set_aside

Owners = list[tuple[str, Any]]


def functions(owners: Owners) -> dict[str, Any]:
    """Every function and class of modules and classes, by name."""
    found: dict[str, Any] = {}
    for name, owner in owners:
        for key, value in list(vars(owner).items()):
            ours = key == "run" and name.endswith("JITFunction")  # our own hook, which launches.intact looks at
            if not ours and (callable(value) or isinstance(value, staticmethod | classmethod | property)):
                found[f"{name}.{key}"] = value
    return found


def _owners(base: type) -> Owners:
    """The modules and classes that results, comparisons and times rest on, by name; ``base``: the user's class."""
    import triton
    from triton.runtime import autotuner, jit

    modules = [torch, torch.nn.functional, torch.autograd, torch.cuda, torch.random, torch.testing, torch.profiler]
    modules += [time, statistics, builtins, os, triton, triton.testing, torch.utils.benchmark]
    own = [m for n, m in list(sys.modules.items()) if n.startswith("kernel_lsp.") and m is not None]
    modules += own
    classes = [torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.cuda.Event, torch.cuda.Stream]
    classes += [torch.utils.benchmark.Timer, torch.cuda.CUDAGraph, jit.JITFunction, autotuner.Autotuner, *base.__mro__]
    classes += [kind for module in (torch.nn, *own) for kind in vars(module).values() if isinstance(kind, type)]
    found = [(module.__name__, module) for module in modules]
    return found + [(f"{kind.__module__}.{kind.__qualname__}", kind) for kind in dict.fromkeys(classes)]


def flags() -> dict[str, Any]:
    """Settings of the whole process that change what eager computes or how long it takes."""
    hooks = vars(torch.nn.modules.module)
    found: dict[str, Any] = {
        "torch.get_default_dtype()": torch.get_default_dtype(),
        "torch.get_default_device()": str(torch.get_default_device()),
        "torch.is_grad_enabled()": torch.is_grad_enabled(),
        "torch.is_inference_mode_enabled()": torch.is_inference_mode_enabled(),
        "torch.get_float32_matmul_precision()": torch.get_float32_matmul_precision(),
        "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled(),
        "torch.backends.cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "torch.backends.cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "torch.backends.cudnn.benchmark": torch.backends.cudnn.benchmark,
        "torch.backends.cudnn.deterministic": torch.backends.cudnn.deterministic,
        "torch.backends.cudnn.enabled": torch.backends.cudnn.enabled,
        "torch.get_num_threads()": torch.get_num_threads(),
        "sys.setprofile and sys.settrace": (sys.getprofile(), sys.gettrace()),
        "the number of threads": threading.active_count(),
    }
    for name in sorted(n for n in hooks if n.startswith("_global_") and n.endswith("hooks")):
        found[f"torch.nn.modules.module.{name}"] = len(hooks[name])
    if (count := cache_set_aside()) is not None:
        found["the part of L2 that is set aside"] = count
    return found


def _hidden(known: set[str], owners: Owners) -> list[str]:
    """The functions that classes have now and had not, in place of one that they inherit."""
    return [
        f"{name}.{key}"
        for name, owner in owners
        if isinstance(owner, type)
        for key, value in vars(owner).items()
        if callable(value) and key != "run" and f"{name}.{key}" not in known
        if any(key in vars(kind) for kind in owner.__mro__[1:])
    ]


#: as they are before a candidate came: it may put others in their place
_all, _len, _map, _vars = all, len, map, vars


class _Before(NamedTuple):
    """A module or class as it was."""

    name: str
    owner: Any
    keys: list[str]
    values: list[Any]
    functions: dict[str, Any]

    def touched(self) -> bool:
        """Whether anything in it is another object now, or in another place. Most never are, and to look at each of their functions takes long."""
        keys, values = [*_vars(self.owner)], [*_vars(self.owner).values()]
        return _len(keys) != _len(self.keys) or not (
            _all(_map(is_, keys, self.keys)) and _all(_map(is_, values, self.values))
        )


class Fingerprints:
    """What there was before a candidate came."""

    def __init__(self, base: type) -> None:
        import torch._dynamo  # noqa: F401 (which torch imports when it must, and which replaces some functions)

        self.before = [
            _Before(name, owner, list(vars(owner)), list(vars(owner).values()), functions([(name, owner)]))
            for name, owner in _owners(base)
        ]
        self.known = {name for one in self.before for name in one.functions}
        self.flags = flags()

    def changed(self) -> list[str]:
        """The names of what is not as it was; what is new does no harm."""
        touched = [one for one in self.before if one.touched()]
        missing, found = object(), list[str]()
        for one in touched:
            now = functions([(one.name, one.owner)])
            found += [name for name, value in one.functions.items() if now.get(name, missing) is not value]
        found += _hidden(self.known, [(one.name, one.owner) for one in touched])
        flags_now = flags()
        return found + [name for name, value in self.flags.items() if flags_now.get(name) != value]
