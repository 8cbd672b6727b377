"""Checks a plan for consistency before its kernels get schedules, so that a mistake is found in the stage that made it."""

from __future__ import annotations

import math

import sympy

from ..graph.division import bounds
from ..graph.lowered import Graph
from ..graph.sizes import Index
from ..graph.value import Shape, Value, numel, operands
from ..graph.verify import named
from .access import GATHERED
from .domain import Domain
from .execution_plan import Call, HostView, Kernel, Plan, Step, hint
from .reads import read


class Malformed(Exception):
    """A plan that would not mean anything: a bug of the synthesizer. The message says which value and why."""


def verify(graph: Graph, plan: Plan) -> None:
    """Check a plan before its kernels are scheduled.

    Raises:
        Malformed: unless

            - what a step reads is an input or was stored by a step before it (a view that torch takes is not, for a kernel), and no value is
              stored twice but by what stands for a product out of its range;
            - each output of the graph is stored;
            - what a kernel stores and loads is indexed by its own atoms, an index for each dimension, and what it stores lies inside the
              tensor for the example inputs, each element once.
    """
    known, viewed, pieces = set(graph.inputs), set[Value](), set[Value]()
    for step in plan.steps:
        again = isinstance(step, Kernel) and step.exact
        for value in _read(step, plan.stored):
            if value not in known and (isinstance(step, Kernel) or value not in viewed):
                raise Malformed(f"{named(value)} is read before it is stored")
        if isinstance(step, HostView):
            viewed.add(step.value)
            continue
        for value in _stored(step):
            if (value in known or value in pieces) and not again:
                raise Malformed(f"{named(value)} is stored twice")
            known.add(value)
        if isinstance(step, Kernel) and step.one_piece:
            assert step.whole is not None
            stored = {value for value, _ in step.stores}  # no step may read these: they have no memory of their own
            pieces, known = pieces | stored, known - stored
            known |= {step.whole} if pieces.issuperset(operands(step.whole)) else set()
        if isinstance(step, Kernel):
            _check_indices(step, graph)
    for value in graph.outputs:
        if value not in known | viewed:
            raise Malformed(f"{named(value)} is an output, and no step stores it")


def _read(step: Step, stored: set[Value]) -> list[Value]:
    if isinstance(step, Kernel):
        return read(step, stored)
    values = [step.value] if isinstance(step, HostView) else step.values
    made = set(_stored(step))
    return [operand for value in values for operand in operands(value) if operand not in made]


def _stored(step: Step) -> list[Value]:
    if isinstance(step, Kernel):
        return step.results if step.one_piece else step.outputs
    return step.values if isinstance(step, Call) else [step.value]


def _check_indices(kernel: Kernel, graph: Graph) -> None:
    domain, sizes = kernel.domain, set(graph.hints)
    here = {symbol: sympy.Integer(n) for symbol, n in graph.hints.items()}
    ranges = {atom: sympy.Integer(hint(domain.size[atom], graph.hints)) for atom in (*domain.kept, *domain.reduced)}
    for value, index, shape in kernel.accesses:
        _check_rank(value, index, shape)
        _check_atoms(value, index, domain, sizes)
    for value, index in kernel.stores:
        filled, at = kernel.destination(value, index)
        _check_rank(value, at, filled.shape)
        _check_atoms(value, at, domain, sizes)
        if kernel.cut is not None or kernel.loop is not None:
            continue  # what lies outside a beginning is masked; a recurrence stores step by step
        stored = math.prod(
            int(ranges[atom]) for atom in set().union(*(domain.resolve(e).free_symbols for e in index)) & ranges.keys()
        )
        if stored != hint(numel(value.shape), graph.hints):
            raise Malformed(f"{named(value)} has {value.shape} elements, of which {stored} are stored")
        for expr, n in zip(index, value.shape, strict=True):
            ends = bounds(domain.resolve(expr).xreplace(here), ranges)
            if ends is not None and (ends[0] < 0 or ends[1] >= n.xreplace(here)):
                raise Malformed(f"{named(value)} is stored at {expr}, outside of its {n} elements")


def _check_rank(value: Value, index: Index, shape: Shape) -> None:
    if len(index) != len(shape):
        raise Malformed(f"{named(value)} has {len(index)} indices for {len(shape)} dimensions")


def _check_atoms(value: Value, index: Index, domain: Domain, sizes: set[sympy.Symbol]) -> None:
    for expr, symbol in ((e, s) for e in index for s in domain.resolve(e).free_symbols):
        if symbol not in domain.size and symbol not in sizes and symbol != GATHERED:
            raise Malformed(f"{named(value)} is addressed at {expr}, and {symbol} is no atom of the kernel")
