"""The facts about a class by which a kernel of another class is adapted to it."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from kernel_lsp.class_schema import Interface

from .errors import Unwritable
from .rules import about_the_module
from .signature import Signature

_OF_EVERY_MODULE = frozenset(dir(torch.nn.Module()))


def interface_of(module: torch.nn.Module, exported: ExportedProgram) -> Interface | None:
    """None where a kernel's envelope could not be written for the module."""
    try:
        signature = Signature(module, *exported.example_inputs)
        settings = about_the_module(module, [tensor for _, tensor in signature.tensors])
    except Unwritable:
        return None
    return Interface(
        parameters=signature.parameters,
        names=signature.names,
        arguments=signature.conditions,
        settings=settings,
        attributes=sorted(set(dir(module)) - _OF_EVERY_MODULE),
    )
