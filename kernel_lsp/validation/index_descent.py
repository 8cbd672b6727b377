"""Where the indices that operators chose have gone: which tensors hold them, moved or shifted, and which follow from them.

A detector chooses a class for each box of a level and puts the levels together, ``torch.cat([scores.max(-1)[1] for scores in levels], 1) +
1``. Each element of that is one that was chosen, plus a number that is no index. Operators are shown to a ``Descent`` one by one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

#: operators that put elements into other memory and change none of them
_MOVING = frozenset(
    ("clone", "_to_copy", "cat", "stack", "flip", "roll", "repeat", "gather", "index", "index_select", "contiguous")
)
#: operators of two whose first keeps its elements but for a number that is added to each
_SHIFTING = frozenset(("add", "sub"))


class Descent:
    """For each memory: which of the elements that were chosen its elements are, and which choices it follows from."""

    def __init__(self) -> None:
        self._places: dict[int, torch.Tensor] = {}
        self._follows: dict[int, frozenset[int]] = {}
        self._read = frozenset[int]()  # choices of which a number went to Python, where its way is not seen
        self._count = 0

    def follows(self, tensor: torch.Tensor) -> frozenset[int]:
        """The numbers of the choices that a tensor was computed with."""
        return self._follows.get(_memory(tensor), frozenset()) | self._read

    def chosen(self, number: int, result: torch.Tensor) -> int:
        """Note that choice ``number`` gave the indices ``result``. The first of the places that stand for its elements (``places``)."""
        first, self._count = self._count, self._count + result.numel()
        order = torch.arange(first, self._count, device=result.device).reshape(result.shape)
        self._keep(result, order)
        self._follows[_memory(result)] = self.follows(result) | {number}
        return first

    def places(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """For each element the place of the chosen one that it is, -1 where it is none. None where no element is one."""
        whole = self._places.get(_memory(tensor))
        if whole is None or whole.numel() * tensor.itemsize != tensor.untyped_storage().nbytes():
            return None
        found = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        return found if bool((found >= 0).any()) else None

    def note(self, func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        """Take a call of an operator into account. ``out``: its result; a view of what it was given is no new memory."""
        given = _tensors((args, kwargs))
        if not isinstance(out, torch.Tensor) and not _tensors(out):
            self._read = self._read.union(*map(self.follows, given))
        before = {_memory(t) for t in given}
        names = [a.name for a in func._schema.arguments]
        named = dict(zip(names, args, strict=False)) | kwargs
        written = [named.get(a.name) for a in func._schema.arguments if a.alias_info and a.alias_info.is_write]
        changed = {_memory(t) for t in _tensors(written)}
        made = {_memory(t) for t in _tensors(out)} - before  # memory that was freed may have been given out again
        if not changed and not made:
            return
        follows = self._read.union(*map(self.follows, given))
        moved = self._moved(str(func).split(".")[1], args, kwargs, out) if before & self._places.keys() else None
        for one in made | changed:
            self._follows.pop(one, None)
            if follows:
                self._follows[one] = follows
        for one in made:
            self._places.pop(one, None)
        for tensor in _tensors(written):
            self._keep(tensor, torch.full(tensor.shape, -1, device=tensor.device))
        if moved is not None:
            self._keep(out, moved)

    def _moved(self, name: str, args: Any, kwargs: dict[str, Any], out: Any) -> torch.Tensor | None:
        """The places of what came of an operator, in the shape of its result; None where it is none that moves indices."""
        if not isinstance(out, torch.Tensor) or out.dtype not in (torch.int64, torch.int32):
            return None
        if name == "copy_":
            found = self.places(args[1])
            return None if found is None else found.expand(out.shape)
        if name in _SHIFTING:
            kept, added = args[:2]
            if name == "add" and self._places_of(kept) is None and kwargs.get("alpha", 1) == 1:
                kept, added = added, kept
            found = self._places_of(kept)
            if found is None or self._read or (isinstance(added, torch.Tensor) and self.follows(added)):
                return None  # what is added may be another number for another choice
            return found.expand(out.shape)
        if name == "_to_copy":
            found = self.places(args[0])
            return None if found is None else found.expand(out.shape)
        if name not in _MOVING:
            return None
        first = args[0]  # what is moved; further arguments say where to
        if any(self.follows(t) for t in _tensors((args[1:], kwargs))):  # a candidate may choose other places
            return None
        if isinstance(first, torch.Tensor):
            return None if (found := self.places(first)) is None else _called(name, found, args, kwargs)
        known = [self.places(t) for t in first]
        parts = [
            torch.full(t.shape, -1, device=t.device) if p is None else p for t, p in zip(first, known, strict=True)
        ]
        return None if all(p is None for p in known) else _called(name, parts, args, kwargs)

    def _places_of(self, operand: Any) -> torch.Tensor | None:
        return self.places(operand) if isinstance(operand, torch.Tensor) else None

    def _keep(self, tensor: torch.Tensor, places: torch.Tensor) -> None:
        """Note the places of a tensor's elements."""
        memory = _memory(tensor)
        count = tensor.untyped_storage().nbytes() // tensor.itemsize
        whole = self._places.get(memory)
        if whole is None or whole.numel() != count:
            if not bool((places >= 0).any()):
                self._places.pop(memory, None)
                return
            whole = self._places[memory] = torch.full((count,), -1, device=tensor.device)
        whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).copy_(places)


def _called(name: str, first: Any, args: Any, kwargs: dict[str, Any]) -> torch.Tensor:
    call = getattr(torch.ops.aten, name)
    found: torch.Tensor = call(first, *args[1:], **kwargs)
    return found


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
