"""Kernels that were validated as correct before, for a class with the same graph, whatever it and its parameters are called.

They are looked up in the store by the graph's hash, rewritten for this class (``adapting.py``) and proposed; they are
validated like any other.
"""

from __future__ import annotations

import ast
import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from kernel_lsp import __version__, class_schema, packed_weights, schema
from kernel_lsp.errors import NothingToLower, NotWritable, StoreUnusable
from kernel_lsp.generators import Request
from kernel_lsp.generators.adapting import Origin, Unsuitable, adapted
from kernel_lsp.settings import Settings
from kernel_lsp.store import recalled
from kernel_lsp.store.database import path_for
from kernel_lsp.store.recalled import Recalled

log = logging.getLogger("kernel_lsp.generators")

NAME = "recall"
_BY_RULE = ("synthesizer", NAME)  # a recalled one is most often the synthesizer's under another name


def missing(settings: Settings) -> str:
    """Without a store, or with nothing in it that was validated as correct, there is nothing to recall."""
    path = path_for(settings.store, settings.root)
    if path is None:
        return "nothing is kept: the setting store is none, or KERNEL_LSP_STORE is empty"
    try:
        return "" if recalled.anything(path) else "nothing that was validated as correct is in the store yet"
    except StoreUnusable as error:
        return str(error)


async def generate(request: Request) -> AsyncIterator[schema.Candidate]:
    """The kernels for this graph, the fastest on this device first.

    Raises:
        UserError: what the worker met when it looked at the class.
    """
    path = path_for(request.settings.store, request.settings.root)
    if why := await asyncio.to_thread(missing, request.settings):
        request.source.problem = why
        return
    request.progress("Looking for a kernel that was validated before")
    answer = await _looked_at(request)
    specimen = schema.from_json(class_schema.Specimen, answer["specimen"])
    interface = schema.from_json(class_schema.Interface, answer.get("interface"))
    request.specimen = specimen
    if interface is None or not specimen.graph or specimen.training:
        request.source.problem = "this class has no graph that a kernel could be found by"
        return
    try:
        proposed, passed_over = await asyncio.to_thread(_proposed, request, specimen, interface, path)
    except StoreUnusable as error:
        request.source.problem = str(error)
        return
    if not proposed:
        request.source.problem = passed_over or "no kernel for the same graph is in the store"
    request.source.expected = len(proposed)
    for candidate in proposed:
        yield candidate


async def _looked_at(request: Request) -> dict[str, Any]:
    """The class, its graph and its interface.

    Where the synthesizer comes next, its answer, which has all of that, is asked for: exporting a graph twice would take
    longer than writing a kernel for it.
    """
    stage = "exporting the graph"
    if _with_the_synthesizer(request):
        try:
            answer: dict[str, Any] = await request.ask_worker("synthesize", f"{stage} and writing the kernel")
            return answer
        except (NothingToLower, NotWritable) as error:
            log.info("%s", error)  # a model may have written what the rules cannot
    answer = await request.ask_worker("interface", stage)
    return answer


def _with_the_synthesizer(request: Request) -> bool:
    return not request.settings.generators or "synthesizer" in request.settings.generators


def _proposed(
    request: Request, specimen: class_schema.Specimen, interface: class_schema.Interface, path: Path | None
) -> tuple[list[schema.Candidate], str]:
    """The candidates, and why the last of the others was passed over.

    Raises:
        StoreUnusable: the store cannot be read.
    """
    on_gpu = request.gpu is not None and request.gpu.kind == "cuda"
    device = request.gpu.name if request.gpu is not None else ""
    found: dict[str, schema.Candidate] = {}
    why = ""
    known = recalled.find(specimen.graph, device, path)
    if not on_gpu:  # without times the class's own kernel is as good as any
        known.sort(key=lambda one: one.class_name != specimen.class_name)
    for one in known:
        if one.graph.bounds != request.settings.bounds:
            why = f'a kernel was validated with bounds = "{one.graph.bounds}"'
            continue
        if one.precision not in ("strict", request.settings.precision):
            why = f'a kernel was validated with precision = "{one.precision}"'
            continue
        if packed_weights.keeps(one.kernel.source) and not request.settings.keep_packed_weights:
            why = "a kernel that was validated keeps packed weights, and keep_packed_weights is off"
            continue
        by_rule = _with_the_synthesizer(request) and one.kernel.generator in _BY_RULE
        if by_rule and (not on_gpu or one.version == __version__):  # only times tell that an older one is better
            why = "what was written by rule is left to the synthesizer"
            continue
        origin = Origin(one.class_name, one.graph.forward, one.graph.inputs, one.graph.state, one.graph.pinned)
        try:
            source = adapted(one.kernel.source, origin, specimen, interface)
        except Unsuitable as error:
            why = f"the kernel of {one.class_name} cannot be rewritten for this class: {error}"
            log.info("%s", why)
            continue
        found.setdefault(_syntax(source), _candidate(one, source))
        if len(found) == min(recalled.MOST, request.samples):
            break
    return list(found.values()), why


def _syntax(source: str) -> str:
    """What two sources have in common that differ in layout and comments alone."""
    try:
        return ast.dump(ast.parse(source))
    except RecursionError:  # an expression of a thousand terms
        return source


def _candidate(one: Recalled, source: str) -> schema.Candidate:
    kernel = one.kernel
    written = kernel.note.partition("; of ")[0] or (f"by {kernel.generator}" if kernel.generator else "")
    where = f"{one.class_name} ({one.file})" if one.file else one.class_name
    how = "validated" if one.here else "imported, validated"
    note = f"{written}; of {where}, {how} on {one.reached_at[:10]}, {one.device}".removeprefix("; ")
    return schema.Candidate(
        source, NAME, note, variant=kernel.variant, pinned=one.graph.pinned, precision=one.precision
    )
