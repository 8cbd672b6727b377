"""How much of a module's work torch does in a candidate: the operators it runs, how large, and whether they suffice."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

#: operators that move, make or fill memory: a kernel may leave them to torch
_NO_WORK = frozenset(
    [
        "copy_",
        "clone",
        "_to_copy",
        "contiguous",
        "fill_",
        "zero_",
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "zeros",
        "zeros_like",
        "new_zeros",
        "ones",
        "ones_like",
        "new_ones",
        "full",
        "full_like",
        "new_full",
        "arange",
        "scalar_tensor",
        "lift_fresh_copy",
        "lift_fresh",
        "detach",
        "_local_scalar_dense",
        "item",
        "resize_",
        "set_",
        "cat",
        "stack",
        "constant_pad_nd",
        "index_select",
        "rand",
        "randn",
        "rand_like",
        "randn_like",
        "normal_",
        "uniform_",
        "is_same_size",
        "_pin_memory",
        "equal",
    ]
)

#: operator -> [calls, elements of its largest tensor]
Work = dict[str, list[int]]


def note(work: Work, func: Any, args: Any, out: Any) -> bool:
    """Add an operator that has run; whether it is one that computes."""
    if any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns):
        return False  # a view
    name = str(func.overloadpacket).replace("::", ".")
    if name.removeprefix("aten.") in _NO_WORK:
        return False
    elements = max((t.numel() for t in pytree.tree_leaves((args, out)) if isinstance(t, torch.Tensor)), default=0)
    calls, largest = work.get(name, [0, 0])
    work[name] = [calls + 1, max(largest, elements)]
    return True


class Counting(TorchDispatchMode):
    """Notes the operators that compute."""

    def __init__(self) -> None:
        super().__init__()
        self.work: Work = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        note(self.work, func, args, out)
        return out


#: products that also add something → the product alone: a kernel that does only the addition leaves torch the rest
_PRODUCTS = {
    "aten.addmm": "aten.mm",
    "aten.linear": "aten.mm",
    "aten.addmv": "aten.mv",
    "aten.baddbmm": "aten.bmm",
    "aten.addbmm": "aten.bmm",
}


def covers(mine: Work, eager: Work) -> bool:
    """Whether torch runs in the candidate every operator that it runs for the module, as often and as large.

    A product counts without what is added to it.
    """
    mine, eager = _products_alone(mine), _products_alone(eager)
    return bool(eager) and all(
        name in mine and mine[name][0] >= calls and 2 * mine[name][1] >= elements
        for name, (calls, elements) in eager.items()
    )


def _products_alone(work: Work) -> Work:
    found: Work = {}
    for name, (calls, elements) in work.items():
        before = found.get(_PRODUCTS.get(name, name), [0, 0])
        found[_PRODUCTS.get(name, name)] = [before[0] + calls, max(before[1], elements)]
    return found


def checksum(tensor: torch.Tensor) -> list[int]:
    """[elements, sum of the bit patterns]: of floats the same for a copy, a permutation and a product with one.

    Of integers and booleans, which are few and often the same in another order (one_hot), for a copy alone.
    """
    flat = tensor.detach().contiguous().reshape(-1)
    if not (flat.dtype.is_floating_point or flat.dtype.is_complex):
        places = torch.arange(1, flat.numel() + 1, device=flat.device)
        return [flat.numel(), int((flat.to(torch.int64) * places).sum()) & ((1 << 47) - 1)]
    if flat.numel() == 0:
        return [0, 0]
    if flat.dtype.is_complex:
        flat = torch.view_as_real(flat).reshape(-1)
    if flat.dtype.is_floating_point:
        flat = flat + 0.0 if flat.dtype.itemsize > 1 else flat  # -0.0 becomes 0.0
        kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        flat = flat.view(kinds[flat.dtype.itemsize])
    return [tensor.numel(), int(flat.sum(dtype=torch.int64)) & ((1 << 47) - 1)]
