"""One sample of an operator: wrapped in a module, exported, synthesized, run under Triton's interpreter, compared with eager.

To be imported where ``TRITON_INTERPRET=1`` was set before triton is imported (``tests.opinfo.process``).
"""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.errors import NothingToLower, NotWritable
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture

from .compare import difference

#: what became of a sample, the worst first
WRONG, CRASH, WIDE, PARTLY, NOT_LOWERED, EAGER, RIGHT = (
    "wrong",
    "crash",
    "envelope",
    "partly",
    "not lowered",
    "eager",
    "right",
)
_MODULE = "opinfo_sample"
_numbers = itertools.count()


@dataclass
class Outcome:
    """``kind`` is one of the above; ``inputs`` says with which inputs (the sample's own, "nan", …)."""

    kind: str
    detail: str = ""
    inputs: str = ""


@dataclass
class Sample:
    """A call of an operator: ``tensors`` are its arguments that are tensors, ``function`` takes them."""

    tensors: list[torch.Tensor]
    function: Callable[..., Any]
    alone: int | None = None  # the tensor that gets NaN and infinity, None for all of them; see _ALONE


def sample_of(operator: Callable[..., Any], sample_input: Any, name: str) -> Sample:
    leaves, spec = pytree.tree_flatten((sample_input.input, tuple(sample_input.args), dict(sample_input.kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: torch.Tensor) -> Any:
        given = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(given, spec)
        return operator(first, *args, **kwargs)

    alone = _ALONE.get(name.rpartition(".")[2])
    return Sample([leaves[i].detach() for i in places], function, alone)


def validate(sample: Sample) -> Outcome:
    """The worst of what becomes of the sample, also with other numbers, strides and sizes put in."""
    if not sample.tensors:
        return Outcome(EAGER, "no tensor is an argument")
    if any(t.layout != torch.strided for t in sample.tensors):
        return Outcome(EAGER, "a sparse tensor")
    with torch.no_grad():
        try:
            expected = sample.function(*[t.clone() for t in sample.tensors])
            again = sample.function(*[t.clone() for t in sample.tensors])
        except Exception as error:
            return Outcome(EAGER, f"eager raises: {error}")
        if any(isinstance(t, torch.Tensor) and t.layout != torch.strided for t in pytree.tree_leaves(expected)):
            return Outcome(EAGER, "a sparse result, which no kernel gives")
        if difference(again, expected, expected):
            return Outcome(EAGER, "its results vary")
        first = Outcome("")
        # A result that is a view of the arguments takes no kernel; with a step after it, it does.
        for step in (None, _step):
            first, kernel, module = _built(sample, step)
            if kernel is not None or "computes nothing" not in first.detail:
                break
        if kernel is None:
            return first
        outcomes = [_run(kernel, module, tensors, name) for name, tensors in _variants(sample, expected)]
    outcomes = [outcome for outcome in outcomes if outcome is not None]
    for kind in (WRONG, CRASH, WIDE):
        if found := next((outcome for outcome in outcomes if outcome.kind == kind), None):
            return found
    if outcomes[0].kind == EAGER:
        return outcomes[0]
    return first if first.kind == PARTLY else Outcome(RIGHT)


def _step(tree: Any) -> Any:
    def changed(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return torch.logical_not(leaf) if leaf.dtype == torch.bool else leaf * 2

    return pytree.tree_map(changed, tree)


def _built(sample: Sample, step: Callable[[Any], Any] | None) -> tuple[Outcome, Any, Any]:
    """(outcome so far, instance of the kernel's class, instance of the module)."""
    names = ", ".join(f"a{i}" for i in range(len(sample.tensors)))
    host = types.ModuleType(_MODULE)
    host.function = (lambda *a: step(sample.function(*a))) if step else sample.function  # type: ignore[attr-defined]
    text = f"import torch\nclass Sample(torch.nn.Module):\n    def forward(self, {names}):\n        return function({names})\n"
    exec(text, host.__dict__)
    sys.modules[_MODULE] = host
    module = host.Sample().eval()
    try:
        exported = capture(module, tuple(sample.tensors))
    except Exception as error:
        return Outcome(NOT_LOWERED, f"not exported: {_short(error)}"), None, None
    if any(map(_draws, exported.graph.nodes)):
        return Outcome(EAGER, "it draws random numbers"), None, None
    try:
        candidate = synthesize(module, exported, class_name="Sample", import_from=_MODULE)[0]
    except (NothingToLower, NotWritable) as error:
        if any(t.numel() == 0 for t in sample.tensors):
            return Outcome(EAGER, "an empty tensor, for which no kernel is written"), None, None
        return Outcome(NOT_LOWERED, _short(error)), None, None
    except Exception as error:
        return Outcome(CRASH, f"synthesize: {_short(error)}"), None, None
    first = Outcome(PARTLY, ", ".join(candidate.kept)) if candidate.kept else Outcome("")
    try:
        kernel = _loaded(candidate.source)
    except Exception as error:
        return Outcome(CRASH, f"import: {_short(error)}"), None, None
    return first, kernel, module


def _draws(node: torch.fx.Node) -> bool:
    """Whether an operator draws random numbers; attention does where something is dropped."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    if node.target is not torch.ops.aten.scaled_dot_product_attention.default:
        return True
    return bool(node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0))


def _loaded(source: str) -> Any:
    """The class of a kernel file; the interpreter reads its source, so it has to be on disk or in the line cache."""
    path = Path(f"/opinfo/kernel_{next(_numbers)}.py")
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    spec = importlib.util.spec_from_loader(path.stem, loader=None, origin=str(path))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module.SampleTriton().eval()


def _run(kernel: Any, module: Any, tensors: list[torch.Tensor], name: str) -> Outcome | None:
    """The kernel beside eager; None where eager does not take such inputs either."""

    def called(function: Any, double: bool = False) -> Any:
        # Operators write to their arguments now and then: each call gets its own.
        return function(*[_as(t, double) for t in tensors])

    try:
        expected: Any = called(module)
    except Exception as error:
        expected = error
    try:
        inside = called(kernel._in_envelope)
    except Exception as error:
        return Outcome(CRASH, f"envelope: {_short(error)}", name)
    if not inside:
        return Outcome(EAGER, "outside its envelope", name)
    if isinstance(expected, Exception):
        return None  # a kernel may give something for what eager refuses: an index out of range, a norm of one element
    try:
        exact = called(module, double=True)
    except Exception:
        exact = expected
    try:
        got = called(kernel)
    except Exception as error:
        return Outcome(CRASH, _short(error), name)
    found = difference(got, expected, exact)
    if found and name.startswith("size"):
        return Outcome(WIDE, found, name)
    return Outcome(WRONG, found, name) if found else Outcome(RIGHT, "", name)


def _as(tensor: torch.Tensor, double: bool) -> torch.Tensor:
    if double and tensor.dtype == torch.float32:
        return tensor.double()
    if tensor.is_contiguous() and tensor.numel():
        return tensor.clone()
    return tensor  # as it is: its strides are what is asked about


#: Of operators whose backends differ in what they make of numbers that are none, the tensor that gets such numbers alone.
#: Transposed convolution: a weight at the input's edge is multiplied by the zeros around the input, or those products are left out.
#: Attention: a row of scores that are NaN is NaN or 0, and so is one that hides an infinity.
_ALONE = {f"conv_transpose{rank}d": 0 for rank in (1, 2, 3)} | {"scaled_dot_product_attention": 2}


def _variants(sample: Sample, expected: Any) -> Iterator[tuple[str, list[torch.Tensor]]]:
    tensors = sample.tensors
    yield "", tensors
    floating = [t.is_floating_point() and t.numel() > 0 for t in tensors]
    if sample.alone is not None:
        floating = [holds and i == sample.alone for i, holds in enumerate(floating)]
    if any(floating):
        for name, numbers in (("nan", [float("nan")]), ("inf", [float("inf"), float("-inf")])):
            yield name, [_with(t, numbers) if f else t for t, f in zip(tensors, floating, strict=True)]
    if any(t.dim() and t.numel() > 1 for t in tensors):
        yield "strides", [_strided(t) for t in tensors]
        yield "expanded", [t[:1].expand_as(t) if t.dim() and t.numel() > 1 else t for t in tensors]
    sizes = sorted({n for t in tensors for n in t.shape if n > 1}, reverse=True)[:2]
    for size in sizes:
        for other in (size + 1, 1):
            yield f"size {size} as {other}", [_resized(t, size, other) for t in tensors]


def _with(tensor: torch.Tensor, numbers: list[float]) -> torch.Tensor:
    changed = tensor.clone().contiguous()
    flat = changed.view(-1)
    for i, number in enumerate(numbers):
        if i < flat.numel():
            flat[i] = number
    return changed


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements, every second in memory."""
    return torch.stack([tensor, tensor], -1)[..., 0] if tensor.dim() else tensor


def _resized(tensor: torch.Tensor, size: int, other: int) -> torch.Tensor:
    """With ``other`` in each dim of ``size``: elements are repeated or left out."""
    for dim, n in enumerate(tensor.shape):
        if n == size:
            tensor = tensor.index_select(dim, torch.arange(other) % n)
    return tensor


def _short(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:160]
