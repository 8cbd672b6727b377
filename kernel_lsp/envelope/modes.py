"""Conditions on the mode of the module, on hooks, on gradients and on autocast."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from .modules import is_of_torch, submodules


def mode_dependent(module: torch.nn.Module) -> list[str]:
    """The modules that may compute something else in training mode than in the eval mode that was exported."""
    result = []
    for source, child in submodules(module):
        depends = reads_mode(type(child))
        if not is_of_torch(child):
            code = getattr(inspect.unwrap(type(child).forward), "__code__", None)
            depends = depends or code is None or any("dropout" in n for n in code.co_names)
        else:
            special = (
                "dropout" in type(child).__name__.lower() or hasattr(child, "running_mean") or hasattr(child, "dropout")
            )
            depends = (depends or special) and getattr(child, "p", 1.0) != 0.0
        if depends:
            result.append(source)
    return result


def reads_mode(kind: type[torch.nn.Module]) -> bool:
    """Whether a method of the class, ``forward`` or one that it may call, asks for ``training``."""
    own = [part for part in kind.__mro__ if issubclass(part, torch.nn.Module) and part is not torch.nn.Module]
    functions = [
        getattr(value, "fget", None) or value
        for part in own
        for name, value in vars(part).items()
        if name not in ("__init__", "train", "eval", "extra_repr")
    ]
    codes = [getattr(inspect.unwrap(f), "__code__", None) for f in functions if callable(f)]
    return any("training" in code.co_names for code in codes if code is not None)


def mode_conditions(module: torch.nn.Module) -> list[str]:
    """The mode that the module is in, where the other one may compute something else."""
    mode = mode_dependent(module)
    word = "" if module.training else "not "
    return (
        [f"{word}self.training", *(f"{word}{source}.training" for source in mode if source != "self")] if mode else []
    )


#: hooks on all modules, which eager would call for each submodule
_GLOBAL_HOOKS = (
    "not (torch.nn.modules.module._global_forward_hooks or torch.nn.modules.module._global_forward_pre_hooks)"
)


def hooks(module: torch.nn.Module) -> list[str]:
    """That no submodule has got a hook, or a forward of its own, since, and that there are none for all modules; eager would call them.

    Those of the example are in its graph: a submodule that has hooks there, as ``weight_norm`` adds one, must have as many of the same names before forward and after it.
    """
    found = [(source, child) for source, child in submodules(module) if child is not module]
    if not found:
        return []
    patched = any("forward" in vars(child) for _, child in found)
    sources = [source for source, child in found if not _hooks_of(child)]
    conditions = [_GLOBAL_HOOKS]
    if len(sources) == 1:
        looked = "{0}._forward_hooks or {0}._forward_pre_hooks" + ("" if patched else ' or "forward" in {0}.__dict__')
        conditions.append(f"not ({looked.format(sources[0])})")
    elif sources:
        looked = 'm["_forward_hooks"] or m["_forward_pre_hooks"]' + ("" if patched else ' or "forward" in m')
        conditions.append(f"not any([{looked} for m in ({', '.join(f'{one}.__dict__' for one in sources)})])")
    for source, child in found:
        if _hooks_of(child):
            for which in ("_forward_pre_hooks", "_forward_hooks"):
                names = [_name_of_hook(hook) for hook in getattr(child, which).values()]
                conditions.append(f"[{_NAME_OF_HOOK} for h in {source}.{which}.values()] == {names!r}")
            conditions += [] if patched else [f'"forward" not in {source}.__dict__']
    return conditions


#: a function's own name, or that of an object's class
_NAME_OF_HOOK = 'getattr(h, "__qualname__", type(h).__qualname__)'


def _name_of_hook(hook: Any) -> str:
    """``_NAME_OF_HOOK`` of the example's."""
    return str(getattr(hook, "__qualname__", type(hook).__qualname__))


def _hooks_of(child: torch.nn.Module) -> bool:
    return bool(child._forward_pre_hooks or child._forward_hooks)


def gradient_conditions(tracked: list[str]) -> list[str]:
    """That no gradients are required, in either mode, and that autocast is off. ``tracked``: what says so of floating-point tensors."""
    either = " or ".join(tracked)
    grad = f"not (torch.is_grad_enabled() and {either if len(tracked) == 1 else f'({either})'})"
    forward = "torch.autograd.forward_ad._current_level < 0"  # a dual tensor does not say that it is one
    return [*([grad, forward] if tracked else []), "not torch.is_autocast_enabled(_DEVICE)"]
