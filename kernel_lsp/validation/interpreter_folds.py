"""Reductions and scans in Triton's interpreter: a function that the kernel brings a block at a time, and sums as a tree.

The interpreter calls such a function for one element after the other, which takes seconds for some ten thousand of them. Here it is
called for whole blocks: neighbours are combined with neighbours, as the threads of a GPU do it, so of n elements in a row there are
about log2(n) calls. A function that is not associative then gives what it would on a GPU: something else than one element
after the other. One that cannot be called with blocks, since it branches on a value, is called as the interpreter does it.

The interpreter has numpy add up, which along the first axis adds one row after the other: 64 numbers of about 1000 have four times
the error of a sum in pairs, as a GPU makes it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Blocks = list[np.ndarray]


class _OneAtATime(Exception):
    """The function asks whether a block is true."""


def repair_folds(tl: Any, interpreter: Any) -> None:
    """Put the two in place; without them, in a later Triton, the interpreter stays as it is."""
    for owner, name, of_blocks in (("ReduceOps", "generic_reduce", _reduced), ("ScanOps", "generic_scan", _scanned)):
        kind = getattr(interpreter, owner, None)
        if kind is not None and hasattr(kind, name):
            setattr(kind, name, _first_in_blocks(tl, getattr(kind, name), of_blocks))
    kind = getattr(interpreter, "ReduceOps", None)
    if kind is not None and hasattr(kind, "sum"):
        kind.sum = _first_as_a_tree(kind.sum)


def _first_in_blocks(tl: Any, one_at_a_time: Callable[..., Any], of_blocks: Callable[..., Any]) -> Callable[..., Any]:
    def combined(self: Any, input: Any) -> Any:
        try:
            with _no_block_is_true(tl.core.tensor):
                return of_blocks(tl, self, input)
        except Exception:  # whatever is wrong with the function is told as the interpreter tells it
            return one_at_a_time(self, input)

    return combined


def _first_as_a_tree(with_numpy: Callable[..., Any]) -> Callable[..., Any]:
    def added(self: Any, input: Any) -> Any:
        data = input.handle.data
        if data.dtype not in (np.float32, np.float64):
            return with_numpy(self, input)
        rest = data.reshape(-1) if self.axis is None else np.moveaxis(data, self.axis, 0)
        while (half := len(rest) // 2) and len(rest) == 2 * half:  # sizes of blocks are powers of two
            rest = rest[:half] + rest[half:]
        total = rest.sum(axis=0)
        if self.keep_dims:
            total = np.reshape(total, (1,) * data.ndim) if self.axis is None else np.expand_dims(total, self.axis)
        return self.to_tensor(total, input.dtype)

    return added


@contextlib.contextmanager
def _no_block_is_true(tensor: Any) -> Iterator[None]:
    """The interpreter takes every block of more than one element for true."""
    before = tensor.__bool__

    def is_true(self: Any) -> bool:
        if self.handle.data.size != 1:
            raise _OneAtATime
        return bool(before(self))

    tensor.__bool__ = is_true
    try:
        yield
    finally:
        tensor.__bool__ = before


def _calling(tl: Any, op: Any, input: Any) -> Callable[[Blocks, Blocks], Blocks]:
    """The kernel's function for blocks of one shape, of which there is one for each tensor of ``input``."""
    dtypes = [(arg.dtype, arg.handle.data.dtype) for arg in input]

    def call(left: Blocks, right: Blocks) -> Blocks:
        given = [
            op.to_tensor(data, dtype) for side in (left, right) for data, (dtype, _) in zip(side, dtypes, strict=True)
        ]
        found = op.combine_fn.fn(*given)
        found = found if isinstance(found, tuple) else (found,)
        values = [one.handle.data if isinstance(one, tl.core.tensor) else one for one in found]
        return [
            np.broadcast_to(value, left[0].shape).astype(numbers)
            for value, (_, numbers) in zip(values, dtypes, strict=True)
        ]

    return call


def _reduced(tl: Any, op: Any, input: Any) -> list[Any]:
    """As ``ReduceOps.generic_reduce``: over ``op.axis``, or over all elements where that is None."""
    call = _calling(tl, op, input)
    every = [arg.handle.data if op.axis is not None else arg.handle.data.reshape(-1) for arg in input]
    # One dimension more, so that what is left at the end is still a block: a number is of another type.
    blocks = [np.moveaxis(data, op.axis or 0, -1)[None] for data in every]
    while blocks[0].shape[-1] > 1:  # a power of two, as all sizes of blocks are
        blocks = call([b[..., 0::2] for b in blocks], [b[..., 1::2] for b in blocks])
    results = []
    for arg, block in zip(input, blocks, strict=True):
        data = block[0, ..., 0]
        if op.keep_dims:
            data = np.expand_dims(data, op.axis) if op.axis is not None else data.reshape((1,) * len(arg.shape))
        elif op.axis is None:
            data = data.item()
        results.append(op.to_tensor(data, arg.dtype))
    return results


def _scanned(tl: Any, op: Any, input: Any) -> list[Any]:
    """As ``ScanOps.generic_scan``, along ``op.axis``."""
    call = _calling(tl, op, input)
    blocks = [np.moveaxis(arg.handle.data, op.axis, -1) for arg in input]
    step, length = 1, blocks[0].shape[-1]
    while step < length:  # each element has what the 2 * step up to it give
        # In blocks of the same size, since theirs are powers of two: before the first element stands the last.
        new = call([np.roll(b, step, -1) for b in blocks], blocks)
        blocks = [np.concatenate([b[..., :step], n[..., step:]], -1) for b, n in zip(blocks, new, strict=True)]
        step *= 2
    return [op.to_tensor(np.moveaxis(b, -1, op.axis), arg.dtype) for b, arg in zip(blocks, input, strict=True)]
