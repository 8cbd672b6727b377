"""Which recorded calls a kernel's header leaves to eager: by dtype, rank, fixed sizes, gradients and autocast.

A header names the envelope for people; the conditions themselves are in the file's code. So this says what lies outside
for certain, and is silent where it cannot tell. A kernel in use is asked itself while the program runs.
"""

from __future__ import annotations

import re
from typing import Any

from kernel_lsp.recording.examples import leaves
from kernel_lsp.recording.records import Shape

_INPUT = re.compile(r"^(?:(?P<name>[^:\[\]]+): )?(?P<dtype>\w+)\[(?P<sizes>[^\]]*)\]$")
_RANGE = re.compile(r"^(?P<symbol>\w+)(?: = [^:]+)?: (?P<least>\d+)(?: to (?P<most>\d+)| or more)")


def why_outside(header: dict[str, Any], shape: Shape) -> str:
    """Why a call is outside of the envelope in a kernel file's header; "" where it is inside, or cannot be told."""
    tensors = [leaf for value in [*shape.args, *shape.kwargs.values()] for leaf in leaves(value) if "tensor" in leaf]
    if "grad" in shape.modes and (shape.trained or any(tensor.get("grad") for tensor in tensors)):
        return "gradients"
    autocast = next((mode for mode in shape.modes if mode.startswith("autocast")), "")
    if autocast:
        return autocast
    envelope = header.get("envelope")
    if not isinstance(envelope, dict):
        return ""
    further = [str(text).split("; ") for text in envelope.get("further") or []]
    named = [([*(envelope.get("inputs") or [])], [*(envelope.get("sizes") or [])])]
    named += [([part for part in parts if _INPUT.match(part)], parts) for parts in further]
    reasons = [_outside(inputs, sizes, tensors) for inputs, sizes in named]
    return reasons[0] if all(reasons) else ""


def _outside(inputs: list[Any], sizes: list[Any], tensors: list[dict[str, Any]]) -> str:
    """Why tensors are outside of one envelope; "" as above."""
    wanted = [_INPUT.match(str(text)) for text in inputs]
    if not wanted or len(wanted) != len(tensors) or not all(wanted):
        return ""
    ranges = [found for text in sizes if (found := _RANGE.match(str(text)))]
    return _differing([found for found in wanted if found], tensors, ranges)


def _differing(wanted: list[re.Match[str]], tensors: list[dict[str, Any]], ranges: list[re.Match[str]]) -> str:
    known: dict[str, str] = {}
    for pattern, tensor in zip(wanted, tensors, strict=True):
        given = _INPUT.match(tensor["tensor"])
        if given is None:
            return ""
        if given["dtype"] != pattern["dtype"]:
            return str(given["dtype"])
        sizes, expected = _sizes(given["sizes"]), _sizes(pattern["sizes"])
        if len(sizes) != len(expected):
            return f"{len(sizes)} dimensions"
        for size, text in zip(sizes, expected, strict=True):
            if text.isdigit() and size != text:
                return f"{tensor['tensor']}, not {pattern['dtype']}[{pattern['sizes']}]"
            if text.isidentifier() and known.setdefault(text, size) != size:
                return f"{tensor['tensor']}, where {text} is {known[text]}"
    for bounds in ranges:
        number = int(known.get(bounds["symbol"], bounds["least"]))
        # torch.export says "at least 2" of every size; kernels take 1 as well.
        if (int(bounds["least"]) > 2 and number < int(bounds["least"])) or (
            bounds["most"] and number > int(bounds["most"])
        ):
            return f"{bounds['symbol']} = {number}"
    return ""


def _sizes(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
