"""Runs cases in a process of its own, where TRITON_INTERPRET is set before triton is imported (or on a GPU).

One JSON object a line: ``{"case": name, "folder": path, "variant": words, "written": path, "programs": 1}`` in, the outcome out.
``variant``: what the label of the candidate that is run has in it, by default of any. ``written``: a folder with what was written of cases
before (written.py). ``programs``: the most of a kernel that seldom has anything to do.
"""
# ruff: noqa: E402 (the environment is set before triton is imported)

from __future__ import annotations

import copy
import importlib.util
import json
import math
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any
from unittest import mock

DEVICE = os.environ.get("KERNEL_LSP_TEST_DEVICE", "cpu")
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

import cases
import torch
import written
from torch.utils import _pytree as pytree

from kernel_lsp.synthesis.schedule import product_space
from kernel_lsp.validation import channel

if DEVICE == "cpu":
    from kernel_lsp.validation.interpreter import repair

    repair()


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def error(result: Any, expected: Any) -> float:
    """Largest difference relative to the largest expected magnitude; infinite where shape or dtype differ, or a number is NaN in one alone.

    Of two NaN, and of two infinities of one sign, it is zero.
    """
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return float("inf")
    if expected.is_complex():
        result, expected = torch.view_as_real(result.resolve_conj()), torch.view_as_real(expected.resolve_conj())
    if not expected.dtype.is_floating_point:
        return 0.0 if torch.equal(result, expected) else float("inf")
    got, wanted = result.double(), expected.double()
    difference = torch.where((got == wanted) | (got.isnan() & wanted.isnan()), 0.0, (got - wanted).abs())
    difference = difference.nan_to_num(nan=math.inf, posinf=math.inf)  # NaN would be no greatest number for max
    return (difference.max() / max(1.0, wanted.nan_to_num(0.0, 0.0, 0.0).abs().max().item())).item()


def _wide(t: torch.Tensor) -> torch.Tensor:
    """A float8 as a dtype that can be compared."""
    return t.float() if t.dtype.is_floating_point and t.dtype.itemsize == 1 else t


def attributes(module: Any) -> dict[str, Any]:
    """The plain tensors and None that the module's tree has in attributes, by path."""
    found = {}
    for path, part in module.named_modules():
        own = {n: v for n, v in vars(part).items() if v is None or isinstance(v, torch.Tensor)}
        found |= {f"{path}.{name}": value for name, value in own.items()}
    return found


def one_memory(tensors: list[Any]) -> list[int]:
    """For each tensor, which one is the first that lies in its memory."""
    places = [t.untyped_storage().data_ptr() if isinstance(t, torch.Tensor) else -1 for t in tensors]
    return [places.index(place) for place in places]


def on_device(leaf: Any) -> Any:
    return leaf.to(DEVICE) if isinstance(leaf, torch.Tensor) else leaf


def run(name: str, folder: Path, variant: str = "", kept: Path | None = None) -> dict[str, Any]:
    torch.manual_seed(0)
    case = cases.CASES[name]
    module = case.kind(*copy.deepcopy(case.init)).train(case.training)  # modules may be shared by cases
    for parameter in module.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    for key, buffer in module.named_buffers():
        if "running" in key:
            buffer.data += torch.rand_like(buffer)
    arguments = case.inputs(0)
    # Elsewhere what torch computes in TF32 on a GPU would be further from float32 than a kernel is.
    torch.backends.cudnn.allow_tf32 = case.halves and case.tf32

    def write() -> tuple[str, str]:
        candidate = cases.made(case, module, arguments, "cases", variant)
        return candidate.source, candidate.note

    source, note = write() if kept is None else written.of(kept, name, write)
    path = folder / f"{name}_triton.py"
    path.write_text(source)
    kind = getattr(load(path), f"{case.kind.__name__}Triton")
    kernel = kind(*copy.deepcopy(case.init)).train(case.training)
    kernel.load_state_dict(module.state_dict())
    kernel, module = kernel.to(DEVICE), module.to(DEVICE)
    for part, other in zip(kernel.modules(), module.modules(), strict=True):
        for key, value in vars(other).items():
            if isinstance(value, torch.Tensor):
                setattr(other, key, value.to(DEVICE))
                setattr(part, key, value.to(DEVICE, copy=True))
    errors, inside, memory = [], [], []
    with torch.no_grad():
        assert all(copy.deepcopy(kernel).state_dict().keys() == one.state_dict().keys() for one in (kernel, module))
        if case.settled:
            first = pytree.tree_map(on_device, case.inputs(0))
            kernel(*first), module(*first)
        for step in case.steps if DEVICE == "cpu" else [one for one in case.steps if one in (0, 1, 3)]:
            arguments = pytree.tree_map(on_device, case.inputs(step))
            before = [t.clone() for t in pytree.tree_leaves(arguments) if isinstance(t, torch.Tensor)]
            inside.append(bool(kernel._in_envelope(*arguments)))
            held, theirs = attributes(kernel), attributes(module)
            versions = [[(b, b._version) for b in one.buffers()] for one in (kernel, module)]
            got, expected = channel.plain(kernel(*arguments)), channel.plain(module(*arguments))
            assert pytree.tree_structure(got) == pytree.tree_structure(expected)
            leaves = [*zip(pytree.tree_leaves(got), pytree.tree_leaves(expected), strict=True)]
            pairs = [pair for pair in leaves if isinstance(pair[1], torch.Tensor)]
            assert all(a == b for a, b in leaves if not isinstance(b, torch.Tensor)), leaves
            pairs += zip(kernel.buffers(), module.buffers(), strict=True)
            changed = [[b._version > version for b, version in one] for one in versions]
            assert changed[0] == changed[1], "autograd is not told of the same buffers that are changed in place"
            for old, new, results in ((held, attributes(kernel), got), (theirs, attributes(module), expected)):
                pairs_of_memory = [*old.values(), *new.values(), *pytree.tree_leaves(results), *arguments]
                memory.append(one_memory(pairs_of_memory))
            assert memory[-1] == memory[-2], (memory, [*attributes(module)])
            mine = [*held.values(), *attributes(kernel).values()]
            after = zip(mine, [*theirs.values(), *attributes(module).values()], strict=True)
            pairs += [pair for pair in after if isinstance(pair[1], torch.Tensor)]
            errors.append(max(error(a, b) for a, b in pairs))
            given = [t for t in pytree.tree_leaves(arguments) if isinstance(t, torch.Tensor)]
            assert all(
                bool(((a == b) | (a != a)).all()) for a, b in zip(map(_wide, before), map(_wide, given), strict=True)
            )
    return {
        "errors": errors,
        "inside": inside,
        "note": note,
        "kernels": len(re.findall(r"@triton\.jit\ndef [^_]", source)),  # helpers are called _…
        "source": source,
    }


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        try:
            kept = Path(request["written"]) if "written" in request else None
            with mock.patch.object(
                product_space, "_MOST_PROGRAMS", request.get("programs", product_space._MOST_PROGRAMS)
            ):
                answer = run(request["case"], Path(request["folder"]), request.get("variant", ""), kept)
        except Exception as problem:
            answer = {"problem": f"{type(problem).__name__}: {problem}", "trace": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
