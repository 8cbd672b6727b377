"""Kernels that mean nothing are refused: each rule of ``verify`` with a small kernel that breaks it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import sympy
import torch

from kernel_lsp.synthesis.kernel.arguments import Arguments
from kernel_lsp.synthesis.kernel.ir import (
    Arange,
    Axis,
    AxisIndex,
    Dot,
    Expr,
    FoldAxis,
    Load,
    Number,
    ProgramId,
    Ref,
    Variable,
    apply,
    plus,
)
from kernel_lsp.synthesis.kernel.statements import Add, Arrive, Await, Barrier, For, Set, Split, Statement, Store
from kernel_lsp.synthesis.schedule.elementwise import blocked, mask_of
from kernel_lsp.synthesis.schedule.program import Blocks, Program, fixed, set_all
from kernel_lsp.synthesis.schedule.verify import Malformed, verify

N = sympy.Symbol("n", integer=True, positive=True)


class Doubling:
    """y = x + x over a block per program, in parts that a test may change."""

    def __init__(self) -> None:
        self.program = Program("double_kernel", Arguments({N: "n"}), grid=[[Blocks(N, 64)]])
        arguments = self.program.arguments
        self.x, self.y = arguments.variable("x_ptr"), arguments.variable("y_ptr")
        arguments.pointers[object()] = self.x  # type: ignore[index]
        arguments.outputs[object()] = self.y  # type: ignore[index]
        size = self.program.block("BLOCK", 64)
        self.axis = Axis(fixed("offsets"), [], "tile")
        self.index = set_all(
            (self.axis.variable, blocked(ProgramId(0), size, self.axis)),
            mask_of(self.axis, "mask", arguments.size(N)),
        )
        self.mask = self.axis.mask
        assert self.mask is not None
        self.load = Load(self.x, AxisIndex(self.axis), (self.mask,), 0.0, torch.float32)
        self.value = Variable("value")
        self.loaded = Set(self.value, self.load)
        held = Ref(self.value, self.load.axes, torch.float32)
        self.stored = Store(self.y, AxisIndex(self.axis), apply("add", held, held), (self.mask,))

    def verify(self, *statements: Statement) -> None:
        self.program.body = [*statements]
        verify(self.program)


def test_a_sound_kernel_passes() -> None:
    kernel = Doubling()
    kernel.verify(*kernel.index, kernel.loaded, kernel.stored)


def _swapped(kernel: Doubling) -> list[Statement]:
    return [*kernel.index, kernel.stored, kernel.loaded]


def _without_index(kernel: Doubling) -> list[Statement]:
    return [kernel.index[1], kernel.loaded, kernel.stored]


def _unmasked_load(kernel: Doubling) -> list[Statement]:
    return [*kernel.index, Set(kernel.value, dataclasses.replace(kernel.load, masks=())), kernel.stored]


def _unmasked_store(kernel: Doubling) -> list[Statement]:
    return [*kernel.index, kernel.loaded, dataclasses.replace(kernel.stored, masks=())]


def _store_to_one_place(kernel: Doubling) -> list[Statement]:
    return [*kernel.index, kernel.loaded, dataclasses.replace(kernel.stored, offset=Number(0))]


def _store_to_nowhere(kernel: Doubling) -> list[Statement]:
    return [*kernel.index, kernel.loaded, dataclasses.replace(kernel.stored, pointer=Variable("z_ptr"))]


def _fold_of_a_scalar(kernel: Doubling) -> list[Statement]:
    folded = FoldAxis("sum", Number(1.0), kernel.axis, 0, False, False, torch.float32)
    return [*kernel.index, Set(Variable("total"), folded)]


def _sum_before_zero(kernel: Doubling) -> list[Statement]:
    return [*kernel.index, Add(Variable("total"), Number(1))]


def _argument_overwritten(kernel: Doubling) -> list[Statement]:
    return [Set(kernel.x, Number(0)), *kernel.index, kernel.loaded, kernel.stored]


def _used_after_its_loop(kernel: Doubling) -> list[Statement]:
    step = next(iter(kernel.program.blocks))
    start, other = fixed("start"), Axis(fixed("cols"), [], "loop")
    inside = Set(other.variable, plus(Ref(start), Arange(step, other)))
    return [For(start, Number(0), Number(128), step, (inside,)), Set(Variable("late"), AxisIndex(other))]


def _product_without_depth(kernel: Doubling) -> list[Statement]:
    total = Variable("total")
    held: Expr = Ref(total, kernel.load.axes, torch.float32)
    assert isinstance(held, Ref)
    return [*kernel.index, kernel.loaded, Set(total, kernel.load), Set(total, Dot(kernel.load, kernel.load, held))]


def _steps(kernel: Doubling, *body: Statement) -> list[Statement]:
    """A loop whose steps hand ``state`` and what lies at y on to each other."""
    state = Ref(kernel.value, kernel.load.axes, torch.float32)
    read = Set(kernel.value, dataclasses.replace(kernel.load, pointer=kernel.y))
    written = dataclasses.replace(kernel.stored, value=apply("add", state, state))
    loop = For(fixed("step"), Number(0), Number(9), Number(1), (read, written, *body), in_order=True)
    return [*kernel.index, kernel.loaded, loop]


def _carried_in_another_shape(kernel: Doubling) -> list[Statement]:
    return _steps(kernel, Barrier(), Set(kernel.value, Number(0.0)))


def _without_barrier(kernel: Doubling) -> list[Statement]:
    return _steps(kernel)


def _counted_nowhere(kernel: Doubling) -> list[Statement]:
    return [Arrive(Variable("z_ptr"), Number(0))]


def _waiting_alone(kernel: Doubling) -> list[Statement]:
    return [Await(kernel.x, Number(0), Number(1))]


def _in_three(kernel: Doubling) -> list[Statement]:
    size = next(iter(kernel.program.blocks))
    return [*kernel.index, Split((Variable("a"), Variable("b"), Variable("c")), kernel.load, (size, size))]


def test_a_recurrence_with_a_barrier_passes() -> None:
    kernel = Doubling()
    kernel.verify(*_steps(kernel, Barrier()))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (_carried_in_another_shape, "value is carried along a loop with another shape"),
        (_without_barrier, "a step reads what another stores at y_ptr without a barrier between them"),
        (_counted_nowhere, "programs are counted at z_ptr, which is no argument"),
        (_waiting_alone, "its programs wait for each other, and need not run at once"),
        (_in_three, "a tile in 3 parts"),
        (_swapped, "value is read before it is set"),
        (_without_index, "the axis offsets is used where it is not set"),
        (_unmasked_load, "a load from x_ptr is not masked along offsets"),
        (_unmasked_store, "a store is not masked along offsets"),
        (_store_to_one_place, "a store loses offsets"),
        (_store_to_nowhere, "a store to z_ptr, which is no argument"),
        (_fold_of_a_scalar, "a fold over offsets, along which nothing varies"),
        (_sum_before_zero, "total is added to before it is set"),
        (_argument_overwritten, "x_ptr is an argument, and set"),
        (_used_after_its_loop, "the axis cols is used where it is not set"),
        (_product_without_depth, "a product over nothing into offsets"),
    ],
)
def test_a_broken_kernel_is_refused(broken: Any, says: str) -> None:
    kernel = Doubling()
    with pytest.raises(Malformed, match=f"double_kernel: {says}"):
        kernel.verify(*broken(kernel))
