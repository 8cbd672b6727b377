"""Kernels of like modules that were validated as correct, for the prompt of a model that converses."""

from __future__ import annotations

import ast
import asyncio
import logging
import os
from pathlib import Path

from kernel_lsp import packed_weights, speedup, why_eager
from kernel_lsp.errors import StoreUnusable
from kernel_lsp.generators import Request
from kernel_lsp.generators.edits import Edits
from kernel_lsp.store import recalled
from kernel_lsp.store.database import path_for
from kernel_lsp.store.recalled import Recalled

log = logging.getLogger("kernel_lsp.generators")

#: characters of all kernels for one module
_MOST = 6000


async def examples(request: Request, leaves: bool) -> list[str]:
    """Texts on up to three kernels, the nearest in graph, operators and device first.

    ``leaves``: the prompt goes to another machine. Then only kernels of the project that the class belongs to are
    taken: where a user sends one project's code, another one's is not sent along.
    """
    specimen = request.specimen
    if specimen is None or not specimen.ops:
        return []
    device = request.gpu.name if request.gpu is not None else ""
    path = path_for(request.settings.store, request.settings.root)
    try:
        found = await asyncio.to_thread(recalled.nearest, specimen.graph, specimen.ops, device, path, 4 * recalled.MOST)
    except StoreUnusable as error:
        log.warning("%s", error)
        return []
    found = [one for one in found if one.precision in ("strict", request.settings.precision)]
    found = [
        one for one in found if not packed_weights.keeps(one.kernel.source)
    ]  # what keeps them is not for a model to write
    if leaves:
        found = [one for one in found if _of_the_project(one, request.path)]
    texts: list[str] = []
    for one in found:
        text = shown(one)
        if text and sum(map(len, texts)) + len(text) <= _MOST and text not in texts:
            texts.append(text)
        if len(texts) == recalled.MOST:
            break
    return texts


def _of_the_project(one: Recalled, path: Path) -> bool:
    return bool(one.root) and Path(os.path.abspath(path)).is_relative_to(one.root)


def shown(one: Recalled) -> str:
    """What was measured, and the kernel without its envelope; "" for what does not parse."""
    kernel = _without_envelope(one.kernel.source)
    if not kernel:
        return ""
    operators = ", ".join(f"{count} × {op}" if count > 1 else op for op, count in one.graph.ops.items())
    said = f"Of a module with {operators}; validated on {one.device}"
    if one.over_eager:
        said += f", {speedup.factor(one.over_eager)} as fast as eager"
    if one.microseconds:
        said += f", {one.microseconds:.1f} µs"
    if one.inputs:
        said += f" for {one.inputs}"
    return f"{said}:\n\n```python\n{kernel}\n```"


def _without_envelope(source: str) -> str:
    """The imports, kernels and forward. What says when they may run is not for a model to write."""
    try:
        edits = Edits(why_eager.without(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    said = edits.tree.body[:1]
    dropped: list[ast.stmt] = [node for node in said if isinstance(node, ast.Expr)]
    for node in edits.tree.body:
        if isinstance(node, ast.ClassDef):
            dropped += [
                item for item in node.body if isinstance(item, ast.FunctionDef) and item.name.startswith("_in_envelope")
            ]
    for statement in dropped:
        edits.replace(edits.lines(statement), "")
    return "\n".join(line for line in edits.text().strip().split("\n") if line.strip())
