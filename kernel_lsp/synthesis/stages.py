"""The stages before a schedule is chosen: an exported graph becomes a graph of values, and that a plan of kernels."""

from __future__ import annotations

import contextlib
import functools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.export import ExportedProgram

from kernel_lsp.envelope.errors import Unwritable
from kernel_lsp.errors import LoweringFailed, NothingToLower, NotWritable, WayFailed

from .graph.faults import RAISE_FAULTS, place
from .graph.functions import TO_HALF
from .graph.lowered import Graph
from .graph.order import topological
from .graph.sizes import ZERO
from .graph.value import Contract, Input, Op, Value, input_of, operands
from .graph.verify import verify
from .kernel.domain import Unalignable
from .kernel.execution_plan import Kernel, Lowered, Planned
from .kernel.verify import verify as verify_plan
from .operators import lower
from .operators.untraceable import Untraceable
from .passes import asked_precision
from .passes.chains import between, chains
from .passes.collapsing import collapse
from .passes.cuts import cut_last
from .passes.exclusive_scans import pad_operands
from .passes.few_elements import write_out
from .passes.first_states import leave_out
from .passes.float8_products import of_float8, unconverted_products
from .passes.layout import channels_last, in_tf32, of_few_channels
from .passes.planes import split_into_planes
from .passes.pointwise import rounded_in_tiles
from .passes.regions import plan
from .passes.rewrite import share
from .passes.rolling import roll
from .passes.short_scans import add_in_float64
from .passes.sizes import name_quotients
from .passes.split_products import split_products
from .passes.splitting import Chunks, split_long_reductions
from .passes.stacked_recurrences import join_recurrences
from .passes.thin_products import can_be_split, split_in_tiles
from .passes.tile_sums import reduce_in_tiles
from .passes.torch_layout import torch_channels_last
from .passes.windows_in_tiles import split_windows
from .printing import bounds
from .schedule.choices import folding_pays
from .schedule.recurrent_space import fit_together, rolling_pays
from .schedule.rewritings import (
    Kept,
    both_pay,
    chain_pays,
    float16_pays,
    half_pays,
    planes_pay,
    pointwise_pays,
    product_parts,
    thin_pays,
    tile_sums_pay,
    windows_pay,
)
from .schedule.target import Target, float8_of
from .schedule.window_order import go_along_memory

#: said of a module with a float8 product whose sum is split
IN_PARTS = "sums in parts"

#: said of a module with convolutions in half precision whose operands are laid out anew
CHANNELS_LAST = "channels-last convolutions"

#: said of a module with two products that share a kernel
CHAINED = "attention in one kernel"

#: said of a module with a product whose kernel reduces its rows or columns
FOLDED = "reductions in products' kernels"

#: said of a module with convolutions that torch is given, and gives back, with their channels last
TORCH_LAST = "channels last"

#: said of a module with products of float16 planes that are split before, and where the sum begins again in each step
PLANES, BEGUN_AGAIN = "float16 planes", "float16 planes, sums begun again every {} elements"

#: said of a module with a thin product whose larger operand is split into planes in its tiles
IN_TILES = "float16 planes in tiles"

#: said of a module with a convolution of few channels whose windows are split into planes in the product's tiles
WINDOWS = "windows of float16 planes in tiles"

#: launches beyond which a module is left to torch
_MOST_LAUNCHES = 1024
_UNROLLED = (
    "its forward comes to {}, one after the other (a loop over time, or over many layers, is unrolled), "
    "and each launch would cost more than its work"
)


def lowered(
    exported: ExportedProgram,
    left: frozenset[str] = frozenset(),
    on: Target | None = None,
    *,
    halves: bool = False,
    tf32: bool = True,
    few_exact: bool = False,
    joined: bool = False,
    parts: bool = True,
    in_tiles: bool = True,
    windows: bool = True,
    begins_again: int = 0,
    chained: bool | None = None,
    torch_last: bool = False,
    folded: bool = True,
    precision: str = "strict",
    keep_packed_weights: bool = False,
) -> Lowered:
    """The exported graph, lowered and rewritten; the operators in ``left`` stay calls of torch.

    ``on``: the GPU that it is for, where that is known. ``halves``: float32 products are made of half precision ones, where that pays there
    and torch is no more exact for numbers of like size. ``tf32``: convolutions may have TF32's error where torch's have by what it is told;
    without it they have float32's, and with ``few_exact`` those of few channels have. ``joined``: recurrences share a launch, where they fit there. ``parts``: sums of thin products are cut
    in parts; without it not those of float8, which often wait for memory alone. ``in_tiles``: thin products may split their larger operand into planes
    as they read it. ``windows``: convolutions of few channels that need float32's error may do so with their windows. ``begins_again``: products of planes begin their sum again after so many elements, for less error; 0: as is the fastest. ``chained``: whether products share a kernel with the one
    before (``passes/chains.py``); None: where that pays. ``torch_last``: convolutions that are left to torch have their channels last.
    ``folded``: kernels of products reduce their rows or columns, where that pays. ``precision``: the setting; where it is not strict, float32 products are rounded
    whatever torch does: with ``halves`` to float16 where that pays (products that are no convolutions for "half" alone), else to TF32.
    ``keep_packed_weights``: the setting; what depends on parameters alone costs nothing in most calls.

    Raises:
        Untraceable: a node neither lowers nor can stand as a torch call.
    """
    graph = lower(exported, left, float8_of(on) if on is not None else "rounded")
    verify(graph)
    graph.keeps_packed_weights = keep_packed_weights
    defined = name_quotients(graph)
    share(graph)
    if collapse(graph):
        verify(graph)
        share(graph)
    if roll(graph, lambda loop: on is None or rolling_pays(loop, on, graph.hints)):
        verify(graph)
        share(graph)
    if unconverted_products(graph):
        share(graph)
    if on is not None and joined:
        together = functools.partial(fit_together, target=on, hints=graph.hints)
        if join_recurrences(graph, functools.partial(together, layers=True), functools.partial(together, layers=False)):
            graph.ways.append("recurrences in one launch")
    leave_out(graph)
    if pad_operands(graph) + add_in_float64(graph):
        verify(graph)
        share(graph)
    if torch_last and torch_channels_last(graph):
        graph.ways.append(TORCH_LAST)
        verify(graph)
        share(graph)
    folded = folded and on is not None
    cut_last(graph, folded=folded)
    if write_out(graph):
        verify(graph)
        share(graph)
    pairs, apart = _chained(graph, on, halves, chained)
    in_pairs = {product.op for pair in pairs.items() for product in pair}
    rounded: list[str] = []
    thin: set[Contract] = set()
    if on is not None and halves and channels_last(graph, _pays_in_half(graph, on), dtypes=tuple(TO_HALF)):
        rounded.append(CHANNELS_LAST)
        share(graph)
    if on is not None and precision != "strict":
        rounded += _rounded_as_asked(graph, on, precision, halves, in_pairs)
        share(graph)
    elif on is not None and halves:
        tf32 = tf32 and tf32_convolutions()
        rounded += _rounded_convolutions(
            graph, on, tf32, of_few_channels if tf32 and few_exact else lambda op: False, windows
        )
        if in_tiles:
            thin = {op for op in _products(graph) if op not in in_pairs and _is_thin(op, on, graph)}

        def pays(op: Contract) -> bool:
            return op not in in_pairs and op not in thin and planes_pay(op, on, graph.hints, _kept(graph))

        if split_into_planes(graph, pays, begins_again=begins_again):
            rounded.append(BEGUN_AGAIN.format(begins_again) if begins_again else PLANES)
        share(graph)
    if on is not None:
        split = split_products(graph, lambda op: _parts(op, on, graph, parts) if op not in in_pairs else 1)
        if any(map(of_float8, split.values())):
            graph.ways.append(IN_PARTS)
        thin = {split.get(op, op) for op in thin}
        if split_in_tiles(graph, lambda op: op in thin, lambda op: both_pay(op, on, graph.hints)):
            rounded.append(IN_TILES)
            share(graph)
    verify(graph)
    whole = {v for second, first in pairs.items() for v in between(first, operands(second)[0])}
    chunks: Chunks = {}
    if on is not None and folded:
        reduce_in_tiles(
            graph, chunks, {*pairs, *pairs.values()}, functools.partial(tile_sums_pay, target=on, hints=graph.hints)
        )
    split_long_reductions(graph, graph.hints, chunks, whole)
    folding = (lambda kernel: folding_pays(kernel, on, graph.hints)) if on is not None and folded else None
    return Lowered(graph, defined, chunks, rounded, pairs, apart, folding)


def _products(graph: Graph) -> list[Contract]:
    return [value.op for value in topological(graph.outputs) if isinstance(value.op, Contract)]


def _is_thin(op: Contract, on: Target, graph: Graph) -> bool:
    return can_be_split(op, graph.hints) and thin_pays(op, on, graph.hints)


def _kept(graph: Graph) -> Kept:
    """Whether what is computed of a value is kept from call to call: where it comes from parameters and buffers alone that no call changes."""

    def kept(value: Value) -> bool:
        read = [v for v in topological([value]) if isinstance(v.op, Input)]
        held = all(input_of(v).kind in ("parameter", "buffer") and v not in graph.updates for v in read)
        return graph.keeps_packed_weights and held and bool(read)

    return kept


def _pays_in_half(graph: Graph, on: Target) -> Callable[[Contract, Contract], bool]:
    """Whether a convolution pays as what it would become, a product of half precision."""
    return lambda op, made: float16_pays(op, made, on, graph.hints)


def _rounded_convolutions(
    graph: Graph, on: Target, tf32: bool, exact: Callable[[Contract], bool], windows: bool
) -> list[str]:
    """What convolutions are made of that may have TF32's error (``tf32``), but for those that are ``exact``, in words. ``windows``: as in ``lowered``."""
    rounded: list[str] = []
    if windows and split_windows(graph, lambda op: (exact(op) or not tf32) and windows_pay(op, on, graph.hints)):
        rounded.append(WINDOWS)

    pays = _pays_in_half(graph, on)
    in_tiles = tf32 and _rounded_in_tiles(graph, on)
    if channels_last(graph, lambda op, made: not exact(op) and pays(op, made), planes=not tf32) or in_tiles:
        rounded.append("float16 convolutions" if tf32 else "convolutions of float16 planes")
    if tf32 and channels_last(graph, lambda op, made: exact(op) and pays(op, made), planes=True):
        rounded.append("those of few channels of float16 planes")
    if tf32 and in_tf32(graph, exact):
        rounded.append("TF32 convolutions")
    left = (v.op for v in topological(graph.outputs) if isinstance(v.op, Contract) and v.op.left.dtype == torch.float32)
    if rounded and any(exact(op) for op in left):
        rounded.append("few channels in float32")
    return rounded


def _rounded_as_asked(graph: Graph, on: Target, precision: str, halves: bool, in_pairs: set[Op]) -> list[str]:
    """What was rounded for the setting ``precision``, in words. ``in_pairs``: products that share a kernel, which rounds as it goes."""
    rounded: list[str] = []
    in_tiles = halves and _rounded_in_tiles(graph, on)
    if (halves and channels_last(graph, _pays_in_half(graph, on))) or in_tiles:
        rounded.append("float16 convolutions")
    pays = halves and precision == "half"
    if pays and asked_precision.in_float16(graph, lambda op: op not in in_pairs and half_pays(op, on, graph.hints)):
        rounded.append("float16 products")
    if asked_precision.in_tf32(graph):
        rounded.append("TF32 products")
    if rounded:
        graph.precision = precision
    return rounded


def _rounded_in_tiles(graph: Graph, on: Target) -> bool:
    """Whether there were convolutions of one element whose kernels round the input as they read it."""
    return bool(rounded_in_tiles(graph, lambda op, made: pointwise_pays(op, made, on, graph.hints)))


def _parts(op: Contract, on: Target, graph: Graph, parts: bool) -> int:
    return product_parts(op, on, graph.hints) if parts or not of_float8(op) else 1


def _chained(
    graph: Graph, on: Target | None, halves: bool, wanted: bool | None
) -> tuple[dict[Value, Value], list[Value]]:
    """Products that share a kernel with the one before, second → first, and those that could."""
    found = chains(graph) if on is not None else {}
    taken: dict[Value, Value] = {}
    for second, first in found.items():
        ops = second.op, first.op
        assert on is not None and isinstance(ops[0], Contract) and isinstance(ops[1], Contract)
        if wanted or (wanted is None and chain_pays(ops[0], ops[1], ops[0].left, on, graph.hints, planes=halves)):
            taken[second] = first
    if taken:
        graph.ways.append(CHAINED)
    return taken, [second for second in found if second not in taken]


def tf32_convolutions() -> bool:
    """Whether torch's convolutions round float32 to TF32 by now: then a kernel's may, too."""
    return bool(torch.backends.cudnn.allow_tf32)


def planned(found: Lowered, *, check_indices: bool = False) -> Planned:
    """Which values share a kernel. ``check_indices``: indices are stored before a kernel reads by them.

    Raises:
        Unalignable: an access fits no kernel.
    """
    graph = found.graph
    steps = plan(graph, bounds.computed(graph) if check_indices else None, found.chained, found.folding)
    for step in steps.steps:
        if isinstance(step, Kernel):
            go_along_memory(step, graph.hints)
    verify_plan(graph, steps)
    if any(isinstance(step, Kernel) and step.contract is not None and step.folds for step in steps.steps):
        graph.ways.append(FOLDED)
    if CHAINED in graph.ways and not found.chained:  # no kernel fitted them
        graph.ways.remove(CHAINED)
    return Planned(graph, found.defined, found.chunks, found.rounded, found.chained, found.apart, found.folding, steps)


def check_writable(found: Planned, class_name: str) -> None:
    """Check that a class around the plan is worth writing.

    Raises:
        NothingToLower: it has no kernel.
        Unwritable: it has too many kernels, or nothing to compute with.
    """
    graph, count = found.graph, len(found.kernels)
    if not count:
        first = graph.kept[0] if graph.kept else "forward"
        why = "" if graph.kept else "It computes nothing."
        if graph.faults:
            why = str(failures(graph, class_name)[0])
        raise NothingToLower(class_name=class_name, op=first, detail=why, kept=counted(graph.kept))
    empty = next((v for v in topological(graph.outputs) if isinstance(v.op, Input) and ZERO in v.shape), None)
    if empty is not None:
        raise Unwritable(
            "forward", f"{input_of(empty).source} is empty in the example: a kernel has nothing to compute"
        )
    if count > _MOST_LAUNCHES:
        raise Unwritable("forward", _UNROLLED.format(f"{count} kernels"))


@contextlib.contextmanager
def told(exported: ExportedProgram, class_name: str) -> Iterator[None]:
    """What the stages raise, as errors for the user: ``NothingToLower`` and ``NotWritable``.

    Raises:
        NothingToLower: a node is untraceable, or nothing is computed in Triton.
        NotWritable: something has no text.
    """
    try:
        yield
    except Untraceable as error:
        path, line = error.place or (None, None)
        raise NothingToLower(class_name=class_name, op=error.op, detail=error.detail, path=path, line=line) from error
    except Unwritable as error:
        raise NotWritable(class_name=class_name, detail=error.detail) from error
    except RecursionError:
        detail = _UNROLLED.format(f"{len(exported.graph.nodes)} operations")
        raise NotWritable(class_name=class_name, detail=detail) from None
    except Unalignable as error:
        raise NothingToLower(
            class_name=class_name,
            op="view",
            detail=f"How its elements are addressed cannot be written in one kernel ({error}).",
        ) from error


@contextlib.contextmanager
def optional(way: str, class_name: str, failed: list[dict[str, Any]]) -> Iterator[None]:
    """For a way to write kernels, in words, that is not the only one: what ends it is not raised.

    That a class has no kernels in this way is no error. Any other is a bug, and goes to ``failed``: ``WayFailed``, as on the wire.

    Raises:
        Exception: the bug itself, where ``KERNEL_LSP_RAISE_FAULTS`` is set.
    """
    try:
        yield
    except (NothingToLower, Unwritable, Unalignable, Untraceable, RecursionError):
        pass
    except Exception as error:
        if os.environ.get(RAISE_FAULTS):
            raise
        file, line, detail = place(error)
        failed.append(WayFailed(class_name=class_name, way=way, file=file, at=line, detail=detail).to_json())


def failures(graph: Graph, class_name: str) -> list[LoweringFailed]:
    """The bugs that the lowerings showed, each once."""
    return [
        LoweringFailed(class_name=class_name, op=one.operator, file=one.file, at=one.line, detail=one.message)
        for one in dict.fromkeys(graph.faults)
    ]


def counted(kept: list[str]) -> dict[str, int]:
    """Operators that stay with torch → how often, named as in ``Specimen.ops``: ``aten.conv2d`` without the overload."""
    return dict(Counter(".".join(name.split(".")[:2]) for name in kept))
