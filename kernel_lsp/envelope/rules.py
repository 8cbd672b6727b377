"""All rules of an envelope in their order: what decides for which calls the kernel runs.

They serve two kinds of kernel. Of one that the synthesizer wrote it is known what it reads. One that a language model
wrote may rely on anything that it was validated with (``Basis.opaque``), so more is held of the module and the tensors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import sympy
import torch

from kernel_lsp.size_text import python

from . import lookups
from .empty_sizes import divisor_conditions
from .modes import gradient_conditions, hooks, mode_conditions
from .sharing import sharing_conditions
from .signature import Signature
from .sizes import Sizes, range_conditions
from .tensors import Tensor, alike, looked_up_once, table_conditions, tensor_conditions, unregistered
from .tree import configuration, structure

#: ``torch.jit.trace`` records operators of torch alone: of a launch it would keep memory that nothing is written to. It warns of each
#: comparison that it sees, so this comes first.
_NOT_TRACED = "not torch.jit.is_tracing()"
#: torch.vmap hides a dimension of its tensors, which have no memory of their own
_NOT_TRANSFORMED = "torch._C._functorch.maybe_current_level() is None"

_TABLE = "tensors"
_SHARED = "what has several names"
_OF_TABLE = "the module's tensors that the kernels read, and their shapes"


@dataclass(frozen=True)
class Basis:
    """What the conditions are written from.

    ``arguments``: the tensors that forward is given; ``state``: the module's own that the kernel reads. ``names``: the
    Python of a state tensor → the name that a condition gives it. ``exact``: whether an equal number of another type
    would change the result's dtype. ``carried``: the Python of attributes that forward assigns, and that may hold anything but
    for what ``state`` says. ``requires``: conditions of the kernel's tiling. ``opaque``: nothing is known of
    the kernel but what it was validated with.
    """

    module: torch.nn.Module
    signature: Signature
    arguments: list[Tensor]
    state: list[Tensor]
    names: dict[str, str]
    exact: bool
    sizes: Sizes = field(default_factory=Sizes)
    requires: list[str] = field(default_factory=list)
    opaque: bool = False
    carried: frozenset[str] = frozenset()


def conditions(basis: Basis) -> list[str]:
    """Conditions in order of what most often differs; all must hold for the kernel to run.

    They use ``_DEVICE``, ``_PLAIN`` and ``_MOST_ELEMENTS``. A state tensor gets its name where it is first looked at (``type(weight :=
    self.weight) in _PLAIN``). Many that differ in their sizes alone are in a table instead, and get no names: ``table_of`` tells its own.
    For a kernel of the synthesizer's, what begins with ``#`` is a comment: what the next ones are about.

    Raises:
        Unwritable: one of them has no text.
    """
    tensors = [*basis.arguments, *basis.state]
    given = {name.strip("*").partition("=")[0] for name in basis.signature.names}
    used = {*given, *basis.names.values()}
    device, table = (lookups.fresh(name, used) for name in ("device", _TABLE))
    symbols: dict[sympy.Symbol, str] = {}
    later: list[tuple[str, sympy.Expr]] = []

    def headed(heading: str, some: list[str]) -> list[str]:
        return [f"# {heading}", *some] if some and not basis.opaque else some

    def about(some: list[Tensor]) -> list[str]:
        result = []
        for one in some:
            found = tensor_conditions(one, tensors[0].source, device, symbols, later, bounded=basis.sizes.bounded)
            result += headed(_heading(one), found)
        return result

    arguments = about(basis.arguments)
    tabled = _tabled(basis)
    state = headed(_OF_TABLE, table_conditions(basis.state, table, device)) if tabled else about(basis.state)
    sizes = []
    for text, n in later:
        sizes += [*divisor_conditions(n, symbols), f"{text} == {python(n, symbols)}"]
    sizes += range_conditions(basis.sizes, symbols)
    sizes += basis.requires
    # The tree comes before the state: a module of another class may not have the parameter at all.
    shared = headed(_SHARED, sharing_conditions(basis.module))
    of_module = [*headed("submodules", structure(basis.module)), *state, *shared]
    sizes = headed("sizes", sizes)
    # An opaque kernel's state has fixed sizes; in a graph it may have those that the conditions on sizes are about.
    result = [_NOT_TRACED, _NOT_TRANSFORMED, *basis.signature.conditions, *arguments]
    result += [*sizes, *of_module] if basis.opaque or not state else [*of_module, *sizes]
    options = settings(basis.module, exact=basis.exact, opaque=basis.opaque, carried=basis.carried)
    result += headed("settings, mode and hooks", options)
    of_each = basis.arguments if tabled else tensors
    tracked = [f"{one.source}.requires_grad" for one in of_each if one.differentiable]
    if tabled and basis.state[0].differentiable:
        tracked.append(f"any(t.requires_grad for t in {table})")
    gradients = gradient_conditions(tracked)
    result += headed("no gradients, backward or forward-mode, and no autocast", gradients)
    if basis.opaque:
        return looked_up_once(result, basis.names)
    return lookups.looked_up_once(result, basis.module, basis.names, {*given, device, table}, named=not tabled)


def table_of(conditions: list[str]) -> str:
    """What conditions call the table of the module's tensors; "" where they have none."""
    found = (re.match(rf"\(({_TABLE}_*) := ", text) for text in conditions)
    return next((match[1] for match in found if match), "")


def _tabled(basis: Basis) -> bool:
    """Whether the module's tensors are in a table: no other condition is about one of them."""
    if basis.opaque or not basis.arguments or not alike(basis.state):
        return False
    others = "\n".join([*basis.requires, *map(str, basis.carried)])
    return all(one.source in basis.names and one.source not in others for one in basis.state)


def _heading(tensor: Tensor) -> str:
    own = tensor.source.removeprefix("self.")
    return own if own != tensor.source else f"argument {own}"


def settings(module: torch.nn.Module, *, exact: bool, opaque: bool, carried: frozenset[str] = frozenset()) -> list[str]:
    """The conditions on what the module's tree holds beside parameters and buffers, on its mode and its hooks."""
    configured = [*configuration(module, exact, carried), *(unregistered(module, carried) if opaque else [])]
    return [*configured, *mode_conditions(module), *hooks(module)]


def about_the_module(module: torch.nn.Module, arguments: list[torch.Tensor]) -> list[str]:
    """The conditions for any kernel that are about neither forward's ``arguments`` nor parameters and buffers.

    Parents come first, so that what later conditions look at is there.

    Raises:
        Unwritable: one of them has no text.
    """
    tensors = [*arguments, *module.parameters(), *module.buffers()]
    exact = any(not tensor.dtype.is_floating_point for tensor in tensors)
    return [*structure(module), *sharing_conditions(module), *settings(module, exact=exact, opaque=True)]
