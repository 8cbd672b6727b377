"""The synthesizer with one of its parts switched off, and what it then proposes for a module.

A switch replaces functions of the synthesizer wherever they are used, for as long as a context lasts. Only what the switch names is
changed; all else goes on as before, so that what a part is worth beside the others can be measured.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch.export import ExportedProgram

from kernel_lsp.errors import UserError
from kernel_lsp.schema import Candidate
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.graph.value import Contract, Input, Pointwise, TorchCall, Value, View
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.passes import cuts
from kernel_lsp.synthesis.passes.chains import between, chains
from kernel_lsp.synthesis.passes.collapsing import collapse
from kernel_lsp.synthesis.passes.fusion import epilogues
from kernel_lsp.synthesis.passes.regions import plan
from kernel_lsp.synthesis.schedule import rewritings
from kernel_lsp.synthesis.stages import Graph, lowered, topological

EVERYTHING = "everything"
#: what can be switched off, in words
PARTS = {
    "fusion": "one kernel for several operators: epilogues, prologues, chains of elementwise operators and reductions",
    "planes": "float32 products as float16 planes, and convolutions in float16",
    "phases": "transposed convolutions phase by phase; without them torch runs them",
    "graphs": "launches replayed from a CUDA graph",
    "collapses": "sums and means that are taken before a linear operation",
    "tuning": "several schedules, of which the fastest is taken; without it the first one that is right",
}
TRANSPOSED = frozenset(f"aten.conv_transpose{rank}d" for rank in (1, 2, 3))

#: what decides whether products are made of half precision ones
_PAY = ("planes_pay", "float16_pays", "half_pays", "pointwise_pays", "thin_pays", "both_pay")
#: views that torch takes without a kernel
_FREE = frozenset(["permute", "reshape", "unsqueeze", "squeeze", "expand", "slice", "select", "cut"])
#: how a file says what it launches
_SAID = re.compile(r" as (one|\d+) Triton kernels?(?: in (\d+) launches)?(?: and (\d+) torch calls?)?\.")


@dataclass
class Way:
    """What the synthesizer proposes with a part switched off: ``candidates``, the likeliest first, or ``why`` there are none."""

    candidates: list[Candidate] = field(default_factory=list)
    why: str = ""

    @property
    def sources(self) -> list[str]:
        return [one.source for one in self.candidates]


def launches(candidate: Candidate) -> tuple[int, int]:
    """How many kernels a call launches, and how many operators torch runs."""
    found = _SAID.search(candidate.source.partition("\n")[0])
    assert found is not None, "a kernel file begins by saying so"
    kernels, several, calls = found.groups()
    return int(several or (1 if kernels == "one" else kernels)), int(calls or 0)


def is_replayed(candidate: Candidate) -> bool:
    """Whether it is replayed from a CUDA graph."""
    return "torch.cuda.CUDAGraph()" in candidate.source


def ways(
    module: torch.nn.Module, exported: ExportedProgram, most: int, parts: list[str], **names: Any
) -> dict[str, Way]:
    """``EVERYTHING`` and each of ``parts``: what is proposed without it, ``most`` candidates each.

    ``names``: of ``synthesize``. Where a part had nothing to do, or its switch changes no file, the way has what ``EVERYTHING`` has.
    """
    transposed = any(_name(node) in TRANSPOSED for node in exported.graph.nodes)
    with _watched() as did:
        everything = _written(module, exported, **names)
    did |= {"fusion": True, "phases": transposed}
    found = {EVERYTHING: Way(everything.candidates[:most], everything.why)}
    for part in parts:
        if part == "graphs":
            way = Way([one for one in everything.candidates if not is_replayed(one)], everything.why)
        elif part == "tuning" or not did[part]:
            way = everything
        else:
            with SWITCHES[part]():
                way = _written(module, exported, **names)
            if part == "phases":  # those of the others that leave all convolutions to torch are in want of none either
                kept = [one for one in everything.candidates if not TRANSPOSED.isdisjoint(one.kept)]
                way = Way([*way.candidates, *(one for one in kept if one.source not in way.sources)], way.why)
        found[part] = Way(way.candidates[:most], "" if way.candidates else way.why)
    return found


def _written(module: torch.nn.Module, exported: ExportedProgram, **names: Any) -> Way:
    try:
        return Way(synthesize(module, exported, **names))
    except UserError as error:
        return Way(why=(str(error).splitlines() or [type(error).__name__])[0])


def _name(node: torch.fx.Node) -> str:
    return str(node.target).rpartition(".")[0]


@contextlib.contextmanager
def everywhere(function: Callable[..., Any], instead: Callable[..., Any]) -> Iterator[None]:
    """``instead`` of a function in each file of the synthesizer that has it by its name."""
    name = function.__name__
    users = [m for key, m in [*sys.modules.items()] if key.startswith("kernel_lsp.synthesis")]
    with contextlib.ExitStack() as stack:
        for module in users:
            if getattr(module, name, None) is function:
                stack.enter_context(mock.patch.object(module, name, instead))
        yield


@contextlib.contextmanager
def _watched() -> Iterator[dict[str, bool]]:
    """For parts that tell of it, whether they did anything within the context."""
    did = {"planes": False, "collapses": False}

    def asked(function: Callable[..., bool]) -> Callable[..., bool]:
        def ask(*given: Any) -> bool:
            answer = function(*given)
            did["planes"] |= answer
            return answer

        return ask

    def collapsed(graph: Graph) -> int:
        count = collapse(graph)
        did["collapses"] |= bool(count)
        return count

    with contextlib.ExitStack() as stack:
        stack.enter_context(everywhere(collapse, collapsed))
        for name in _PAY:
            function = getattr(rewritings, name)
            stack.enter_context(everywhere(function, asked(function)))
        yield did


@contextlib.contextmanager
def without_planes() -> Iterator[None]:
    """No product is rounded to float16, or split into planes of it, before it is multiplied. TF32 stays where torch has it."""
    with contextlib.ExitStack() as stack:
        for name in _PAY:
            stack.enter_context(everywhere(getattr(rewritings, name), lambda *_: False))
        yield


@contextlib.contextmanager
def without_collapses() -> Iterator[None]:
    """Nothing is summed before a linear operation."""
    with everywhere(collapse, lambda graph: 0):
        yield


@contextlib.contextmanager
def without_phases() -> Iterator[None]:
    """Transposed convolutions stay calls of torch in every candidate."""

    def left_to_torch(exported: ExportedProgram, left: frozenset[str] = frozenset(), *given: Any, **more: Any) -> Any:
        return lowered(exported, left | TRANSPOSED, *given, **more)

    with everywhere(lowered, left_to_torch):
        yield


@contextlib.contextmanager
def without_fusion() -> Iterator[None]:
    """Each operator of the exported graph stores its result, and the next one reads that.

    Within an operator all stays together: a bias with its product, the steps of a softmax, the two products of an attention that is one
    operator. Views that torch takes without a kernel are still read through.
    """
    ends: set[Value] = set()  # results of operators; lowered graphs share no values

    def lower_and_note(exported: ExportedProgram, *given: Any, **more: Any) -> Graph:
        graph = lower(exported, *given, **more)
        ends.update({value.node: value for value in topological(graph.outputs) if value.node}.values())
        return graph

    def not_folded(*given: Any, **more: Any) -> Any:
        return lowered(*given, **more | {"folded": False})

    def within_one(graph: Graph) -> dict[Value, Value]:
        pairs = chains(graph)
        return {
            second: first
            for second, first in pairs.items()
            if ends.isdisjoint([first, *between(first, second.op.left)])  # type: ignore[union-attr]
        }

    def no_further(graph: Graph, *given: Any, folded: bool = False, **more: Any) -> dict[Value, Value]:
        """As if each operator's result were one of the graph's."""
        results = [value for value in topological(graph.outputs) if value in ends]
        return epilogues(dataclasses.replace(graph, outputs=[*graph.outputs, *results]), *given, **more)

    def one_by_one(graph: Graph, stored: set[Value] | None = None, chained: Any = None, folding: Any = None) -> Any:
        results = {value for value in topological(graph.outputs) if value in ends and _has_a_kernel(value)}
        return plan(graph, {*(stored or ()), *results}, chained, None)

    own = cuts.is_cut
    with (
        everywhere(lower, lower_and_note),
        everywhere(lowered, not_folded),
        everywhere(chains, within_one),
        everywhere(epilogues, no_further),
        everywhere(plan, one_by_one),
        # What is cut off a transposed convolution is cut before the next operator.
        mock.patch.object(cuts, "is_cut", lambda value: own(value) and value not in ends),
    ):
        yield


def _has_a_kernel(value: Value) -> bool:
    """Whether a value that is stored was computed, and is not seen in another way."""
    op = value.op
    if isinstance(op, View):
        computed = isinstance(op.operand.op, Pointwise) and op.operand.node == value.node  # cut after its bias
        return (op.name == "cut" and computed) or op.name not in _FREE or bool(op.map.guard)
    return not isinstance(op, Input | TorchCall | Contract)


SWITCHES: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "fusion": without_fusion,
    "planes": without_planes,
    "phases": without_phases,
    "collapses": without_collapses,
}
