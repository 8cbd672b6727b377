"""Plain tensor attributes that forward assigns, or changes in place (``self.hidden = …``), as inputs and results of an exported graph.

torch.export knows buffers alone. So what such an attribute holds is given to forward beside its arguments, and what it
holds in the end is a result. In the exported program the former then counts as a buffer, the latter as what that becomes.
"""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, TensorArgument
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree

#: the name under which forward is given what the attributes hold
_GIVEN = "held_in_attributes"
#: where an exported program has its ``Kept``
_META = "attributes"
_ABSENT = object()


@dataclass
class Kept:
    """What a forward does with one attribute; ``path``: "cell.hidden".

    ``given``: it holds a tensor before, which the graph has as an input. ``read``: forward looks at it before it assigns it.
    ``assigned``: it holds another object in the end: that result of the graph (``result``), which is also something that
    forward returns where ``returned``; or the argument of that number (``argument``), or the tensor of the module that ``state`` is
    the path of, or None.
    """

    path: str
    given: bool = False
    read: bool = False
    assigned: bool = False
    result: int | None = None
    returned: bool = False
    argument: int | None = None
    state: str | None = None
    handed_out: bool = False  # something that forward returns lies in the memory of what it held before


class Unkept(Exception):
    """An attribute is assigned what a kernel cannot be made to assign; ``why`` as a clause."""

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path}: {why}")


def of(exported: ExportedProgram) -> list[Kept]:
    """The attributes that forward assigns or changes."""
    return list(exported.graph_module.meta.get(_META, ()))


def is_plain(module: torch.nn.Module, path: str) -> bool:
    """Whether ``path`` names an attribute that holds a tensor or None, or does not exist yet."""
    owner, _, name = path.rpartition(".")
    if not name.isidentifier():
        return False
    try:
        held = vars(module.get_submodule(owner)).get(name)
    except AttributeError:
        return False
    return held is None or type(held) is torch.Tensor or isinstance(held, torch._subclasses.FakeTensor)


@dataclass
class Carried:
    """A module, which has to be a copy, whose attributes ``paths`` are inputs and results of its forward.

    ``first``: tensors that attributes hold before, where that is not what they hold now.
    """

    module: torch.nn.Module
    paths: list[str]
    first: dict[str, torch.Tensor]
    kept: list[Kept] = field(default_factory=list)
    made: dict[str, torch.Tensor] = field(
        default_factory=dict
    )  # path → what it holds after a call in which it was traced

    def __post_init__(self) -> None:
        self._forward = self.module.forward
        self._now: dict[str, Any] = {}
        self._met: dict[str, str] = {}  # path → what was done with it first, "read" or "set"
        self._before = {path: self._taken(path) for path in self.paths}
        self.given = [path for path in self.paths if isinstance(self._before[path], torch.Tensor)]
        by_owner: dict[str, list[str]] = {}
        for path in self.paths:
            owner, _, name = path.rpartition(".")
            by_owner.setdefault(owner, []).append(name)
        for owner, names in by_owner.items():
            part = self.module.get_submodule(owner)
            kind = type(part)
            watched = {name: self._watched(f"{owner}.{name}" if owner else name) for name in names}
            part.__class__ = type(kind.__name__, (kind,), {"__module__": kind.__module__, **watched})
        self.module.forward = self._named()  # type: ignore[method-assign]

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword argument that forward takes beside its own."""
        return {_GIVEN: tuple(self._before[path] for path in self.given)}

    def _taken(self, path: str) -> Any:
        """What an attribute holds, which is no longer found in the module itself."""
        owner, _, name = path.rpartition(".")
        held = vars(self.module.get_submodule(owner)).pop(name, _ABSENT)
        return self.first.get(path, held)

    def _watched(self, path: str) -> property:
        def look(part: Any) -> Any:
            self._met.setdefault(path, "read")
            if (held := self._now.get(path, _ABSENT)) is _ABSENT:
                raise AttributeError(f"{type(part).__name__!r} object has no attribute {path.rpartition('.')[2]!r}")
            return held

        def put(part: Any, value: Any) -> None:
            self._met.setdefault(path, "set")
            self._now[path] = value

        def remove(part: Any) -> None:
            put(part, _ABSENT)

        return property(look, put, remove)

    def _named(self) -> Any:
        """Forward with one keyword more, by its signature too."""

        def named(*args: Any, **kwargs: Any) -> Any:
            return self._call(args, kwargs)

        signature = inspect.signature(self._forward)
        added = inspect.Parameter(_GIVEN, inspect.Parameter.KEYWORD_ONLY)
        named.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*signature.parameters.values(), added]
        )
        return named

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        held = dict(zip(self.given, kwargs.pop(_GIVEN), strict=True))
        self._now = {**self._before, **held}
        self._met = {}
        result = self._forward(*args, **kwargs)
        arguments = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        return result, self._noted(result, arguments, held)

    def _noted(self, result: Any, arguments: list[torch.Tensor], held: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        """Fills ``kept``; what attributes hold in the end, where that is a result of the graph."""
        parameters = dict(self.module.named_parameters())
        state = {**parameters, **dict(self.module.named_buffers()), **held}
        leaves = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.kept, self.made = [], {}
        results: list[torch.Tensor] = []
        for path in self.paths:
            now = self._now.get(path, _ABSENT)
            one = Kept(path, path in held, self._met.get(path) == "read")
            one.handed_out = path in held and any(_memory(leaf) == _memory(held[path]) for leaf in leaves)
            one.assigned = now is not (held[path] if path in held else self._before[path])
            self.kept.append(one)
            if isinstance(now, torch.Tensor):
                self.made[path] = now
            if not one.assigned or now is None:
                continue
            if not isinstance(now, torch.Tensor):
                what = "is deleted" if now is _ABSENT else f"becomes a {type(now).__name__}"
                raise Unkept(path, f"it {what}")
            self._find(one, now, arguments, state)
            if one.state in parameters:
                raise Unkept(path, "it becomes a parameter")
            if one.argument is not None or one.state is not None:
                continue
            one.returned = _among(now, leaves, path) is not None
            _among(now, results, path)
            one.result = len(results)
            results.append(now)
        return tuple(results)

    def _find(
        self, one: Kept, now: torch.Tensor, arguments: list[torch.Tensor], state: dict[str, torch.Tensor]
    ) -> None:
        """Whose memory it is, where it is not new."""
        one.argument = _among(now, arguments, one.path)
        if one.argument is None and (place := _among(now, list(state.values()), one.path)) is not None:
            one.state = [*state][place]


def _among(tensor: torch.Tensor, others: list[torch.Tensor], path: str) -> int | None:
    """Which of ``others`` the tensor is.

    Raises:
        Unkept: it is a part of one, or one seen in another way.
    """
    for i, other in enumerate(others):
        if tensor is other:
            return i
    for i, other in enumerate(others):
        if _memory(other) == _memory(tensor):
            if _laid_out(tensor) == _laid_out(other):
                return i
            raise Unkept(path, "it becomes a view of another tensor, where clone() would make it one of its own")
    return None


def _memory(tensor: torch.Tensor) -> StorageWeakRef:
    return StorageWeakRef(tensor.untyped_storage())


def _laid_out(tensor: torch.Tensor) -> tuple[str, ...]:
    """How it lies in its memory; as text, since comparing sizes would fix them."""
    return (
        str(tensor.dtype),
        str(tensor.storage_offset()),
        *(f"{n}, {m}" for n, m in zip(tensor.shape, tensor.stride(), strict=True)),
    )


def fixed(kwargs: dict[str, Any]) -> dict[str, Any]:
    """That sizes of what attributes hold do not vary, as torch.export has it: the module makes them."""
    held = kwargs.get(_GIVEN)
    return {} if held is None else {_GIVEN: tuple({d: Dim.STATIC for d in range(one.dim())} for one in held)}


def settled(carried: Carried, like: Any) -> dict[str, torch.Tensor]:
    """Tensors as they are in attributes after a first call, where forward asks whether there is one and makes it if not.

    ``like``: forward's arguments, fake or not.
    """
    lazy = [one.path for one in carried.kept if one.read and not one.given and one.path in carried.made]
    mode = torch._guards.detect_fake_mode(pytree.tree_leaves(like))
    found = {}
    for path in lazy:
        made = carried.made[path]
        shape, stride = ([int(_example(n)) for n in sizes] for sizes in (made.shape, made.stride()))
        if mode is None:
            found[path] = torch.empty_strided(shape, stride, dtype=made.dtype, device=made.device)
        else:
            with mode:
                found[path] = torch.empty_strided(shape, stride, dtype=made.dtype, device=made.device)
    return found


def _example(size: Any) -> int:
    """A size that the export left dynamic, as it is in the example."""
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)


def finished(
    exported: ExportedProgram, carried: Carried, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ExportedProgram:
    """The program of the module's own arguments and results: ``given`` attributes are buffers of it."""
    signature = exported.graph_signature
    users = [i for i, spec in enumerate(signature.input_specs) if spec.kind is InputKind.USER_INPUT]
    own = len(users) - len(carried.given)
    names: dict[str, str] = {}
    for i, path in zip(users[own:], carried.given, strict=True):
        argument = signature.input_specs[i].arg
        assert isinstance(argument, TensorArgument)
        names[argument.name] = path
        signature.input_specs[i] = InputSpec(InputKind.BUFFER, argument, path, persistent=False)
    results = [one for one in carried.kept if one.result is not None]
    count = len(signature.output_specs)
    for i, spec in enumerate(signature.output_specs):
        if spec.kind is OutputKind.USER_INPUT_MUTATION and spec.target in names:
            new = dataclasses.replace(spec, kind=OutputKind.BUFFER_MUTATION, target=names[spec.target])
            signature.output_specs[i] = new
        elif i >= count - len(results):
            path = results[i - count + len(results)].path
            signature.output_specs[i] = dataclasses.replace(spec, kind=OutputKind.BUFFER_MUTATION, target=path)
    whole = exported.module_call_graph[0].signature
    assert whole is not None
    whole.out_spec = (
        whole.out_spec.children()[0] if callable(whole.out_spec.children) else whole.out_spec.children_specs[0]
    )
    whole.in_spec = pytree.tree_structure((args, kwargs))
    exported.example_inputs = (args, kwargs)
    exported.graph_module.meta[_META] = tuple(carried.kept)
    return exported
