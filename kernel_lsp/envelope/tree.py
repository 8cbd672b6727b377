"""Conditions on the module's tree: what it is made of, and the settings that its modules hold."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from kernel_lsp.naming import attribute

from .counters import only_changed
from .errors import Unwritable
from .held_objects import closure_conditions, settings_in
from .modes import mode_dependent
from .module_settings import absent, literal, of_every_module, setting
from .modules import is_of_torch, submodules
from .reading import class_attributes, methods, read_in_a_call, reads, words

#: what forward of a module of torch does not read, or what the shapes of its parameters say as well
_TORCH_DERIVED = frozenset(
    [
        "in_features",
        "out_features",
        "num_features",
        "normalized_shape",
        "num_channels",
        "embedding_dim",
        "num_embeddings",
        "training",
        "in_channels",
        "out_channels",
        "elementwise_affine",
        "affine",
        "dump_patches",
        "call_super_init",
        "transposed",
    ]
)

_CONTAINERS = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict)


def structure(module: torch.nn.Module) -> list[str]:
    """What the module's tree is made of, parents first, so that what later conditions look at is there."""
    result: list[str] = []
    for source, child in submodules(module):
        kind = type(child)
        if child is not module:
            known = getattr(torch.nn, kind.__name__, None) is kind  # others may have a module of that name, too
            text = f"type({source}) is torch.nn.{kind.__name__}"
            result.append(text if known else f'type({source}).__name__ == "{kind.__name__}"')
        if not is_of_torch(child) or isinstance(child, _CONTAINERS):
            names = [name for name, value in child._modules.items() if value is not None]
            if names or isinstance(child, _CONTAINERS):
                result.append(f"[*{source}._modules] == {[*child._modules]}")
        missing = [*child._parameters.items(), *child._buffers.items(), *child._modules.items()]
        result += [f"{source}.{name} is None" for name, value in missing if value is None and name.isidentifier()]
    return result


def configuration(module: torch.nn.Module, exact: bool, carried: frozenset[str] = frozenset()) -> list[str]:
    """What the constructor may set and forward may read: numbers, strings and functions held by the module's tree.

    ``exact``: whether an equal number of another type would change the result's dtype. ``carried``: the Python of
    attributes that are left out, since forward assigns them.

    Raises:
        Unwritable: the tree holds a tensor of one element that is no buffer and not on the CPU.
    """
    result: list[str] = []
    mode = mode_dependent(module)
    counted = counters(module)
    users = _users(module)
    called = read_in_a_call(users)
    known = _known(module)
    for source, child in submodules(module):
        own, kind = is_of_torch(child), type(child)
        for name, value in _held(child, called).items():
            if (
                f"{source}.{name}" in carried
                or of_every_module(name)
                or f"{source}.{name}" in counted
                or (own and (name.startswith("_") or _is_derived(child, name) or _of_weight(child, name)))
            ):
                continue
            if name.startswith("_") and name not in called and not reads(kind, name):
                continue  # bookkeeping of a library; public names may be read by functions given the module
            drops = name in ("p", "inplace") and "dropout" in kind.__name__.lower()
            follows = name == "momentum" and hasattr(child, "running_mean")
            keeps = name == "track_running_stats" and isinstance(child, torch.nn.modules.batchnorm._BatchNorm)
            if own and source in mode and (drops or follows or keeps) and not (module.training or child.training):
                continue  # how much is dropped, or how running statistics are moved, matters in training alone
            try:
                text = setting(f"{source}.{name}", value)
            except Unwritable:
                if name in vars(child):
                    raise
                text = f'"{name}" not in {source}.__dict__'  # a table in the class, which the file's digest has
            if text is not None:
                typed = exact and not own and type(value) in (int, float)
                result.append(f"type({source}.{name}) is {type(value).__name__} and {text}" if typed else text)
            elif isinstance(value, torch.Tensor):
                result += _held_tensor(f"{source}.{name}", value)
            elif inspect.isroutine(value) and hasattr(value, "__qualname__"):
                result.append(f"{source}.{name}.__qualname__ == {value.__qualname__!r}")
                result += closure_conditions(f"{source}.{name}", value)
            elif not own:
                result += settings_in(kind, f"{source}.{name}", name, value, known, users)
        if not own:
            result += [
                f"{source}.{name}.requires_grad is {held.requires_grad}" for name, held in _asked_for_gradients(child)
            ]
            result += absent(source, child, carried)
    return result


def counters(module: torch.nn.Module) -> list[str]:
    """The Python of attributes that hold no tensor, and that methods of the user's classes change and nothing reads: ``self.calls``."""
    users = [(source, child) for source, child in submodules(module) if not is_of_torch(child)]
    names = only_changed(_users(module))
    return [
        f"{source}.{name}"
        for source, child in users
        for name, value in _held(child, names).items()
        if name in names and not of_every_module(name) and not isinstance(value, torch.Tensor)
    ]


def _asked_for_gradients(module: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters whose requires_grad a method of the module's class may read: it mentions both names."""
    mentioned = [words(method.__code__) for method in methods(type(module))]
    asking = set().union(*(found for found in mentioned if "requires_grad" in found))
    return [(name, held) for name, held in module._parameters.items() if held is not None and name in asking]


def _known(module: torch.nn.Module) -> dict[int, str]:
    """The id of each submodule, parameter and buffer, with its Python inside forward."""
    held = [*module.named_modules(), *module.named_parameters(), *module.named_buffers()]
    return {id(value): attribute(path) for path, value in held if path}


def _users(module: torch.nn.Module) -> frozenset[type]:
    """The user's classes in a tree."""
    return frozenset(type(child) for _, child in submodules(module) if not is_of_torch(child))


def _held(module: torch.nn.Module, read: frozenset[str]) -> dict[str, Any]:
    """What a module holds, and the attributes of its class (``eps = 1e-6``) among ``read``, which the module may later override."""
    return {**vars(module), **class_attributes(module, read)}


def _is_derived(module: torch.nn.Module, name: str) -> bool:
    """Whether nothing has to be asked about a setting of a module of torch; a norm without weights has its shape there alone."""
    return name in _TORCH_DERIVED and not (name == "normalized_shape" and module._parameters.get("weight") is None)


def _of_weight(module: torch.nn.Module, name: str) -> bool:
    """Whether a convolution's setting is in its weight's shape, or is read by transposed ones alone. Pooling reads its own."""
    if not isinstance(module, torch.nn.modules.conv._ConvNd):
        return False
    return name == "kernel_size" or (name == "output_padding" and not module.transposed)


def _held_tensor(source: str, tensor: torch.Tensor) -> list[str]:
    """Conditions for a tensor that is neither parameter nor buffer: with one element it is a constant of the kernel."""
    if tensor.numel() != 1 or tensor.is_complex():
        return []  # lowering has stopped if forward reads it
    if tensor.device.type != "cpu":
        raise Unwritable("forward", f"{source} is a tensor but no buffer; register_buffer makes it one")
    return [
        f'{source}.device.type == "cpu"',
        f"{source}.dtype == {tensor.dtype}",
        f"{source}.tolist() == {literal(tensor.tolist())}",
    ]
