"""Checks random modules in a process of its own, where TRITON_INTERPRET is set before triton is imported.

One JSON object a line: ``{"seed": 3}`` in; out ``{"source": text, "found": [what is wrong]}``, and ``"nothing"`` where it has no kernel.
"""

from __future__ import annotations

import os

os.environ |= {"TRITON_INTERPRET": "1", "KERNEL_LSP_RAISE_FAULTS": "1"}

import copy
import importlib.util
import itertools
import json
import logging
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from kernel_lsp.errors import UserError
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.validation import guards
from kernel_lsp.validation.interpreter import repair
from tests.synthesis.random_modules import arranging, changing, elementwise, indexing, multiplying, reducing
from tests.synthesis.random_modules.comparison import TOLERANCE, TOLERANCE_OF_HALVES, difference
from tests.synthesis.random_modules.composition import Composition, drawn
from tests.synthesis.random_modules.inputs import (
    Call,
    as_float64,
    example,
    other_calls,
    same_tensor_twice,
    small,
)
from tests.synthesis.random_modules.memory import Watch

STEPS = {
    **elementwise.STEPS,
    **reducing.STEPS,
    **arranging.STEPS,
    **indexing.STEPS,
    **multiplying.STEPS,
    **changing.STEPS,
}
#: Schedules for it are those of a GPU; every third seed's, since they differ from those without one.
GPU = "NVIDIA H100 80GB HBM3"
#: Calls of a module's first kernel, and of another of its candidates: a number, so that a seed finds the same on every machine.
CALLS, CALLS_OF_ANOTHER = 30, 8
#: Seconds of the processor after which the calls of a slow kernel end, and seconds of all that is done with a module.
SECONDS, LIMIT = 5.0, 90
MOST_RESULT_ELEMENTS = 10000
#: What eager refuses and a kernel need not: places that are out of range, where it does not read, and layouts that view cannot take.
_MAY_BE_TAKEN = ("out of range", "out of bounds", "index", "view size is not compatible")
_OUT_OF_RANGE = ("special", "large", "tiny")
_ATTENTION = re.compile(r"scaled_dot_product|MultiheadAttention")
#: By how much inputs are moved to see what rounding decides.
_ROUNDING = {torch.float32: 1e-6, torch.float64: 1e-15, torch.float16: 1e-3, torch.bfloat16: 8e-3}
_ROUNDING_OF_HALVES = 8e-3


class Overtime(BaseException):
    """A module took longer than LIMIT."""


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@dataclass
class Subject:
    """A random module, its class's file ``stem``, and whether it computes in half or single precision anywhere."""

    composition: Composition
    module: nn.Module
    stem: str
    folder: Path
    halves: bool
    singles: bool

    def double(self) -> nn.Module:
        return copy.deepcopy(self.module).double()


def subject(c: Composition, folder: Path) -> Subject:
    path = folder / f"composition_{c.seed}.py"
    text = c.source()
    path.write_text(text)
    torch.manual_seed(1)
    module = load(path).Composition().train(c.training).to(c.dtype)
    for parameter in module.parameters():
        parameter.requires_grad_(False).add_(0.1 * torch.randn(parameter.shape).to(c.dtype))
    for name, buffer in module.named_buffers():
        if "running" in name:
            buffer += torch.rand(buffer.shape).to(buffer.dtype)
    halves = any(word in text for word in ("half", "float16")) or c.dtype.itemsize == 2
    singles = any(word in text for word in ("float32", ".float()"))
    return Subject(c, module, path.stem, folder, halves, singles)


def calls(s: Subject) -> Iterator[Call]:
    """The example; then the others in an order of its own for each seed, since not all are made."""
    c = s.composition
    arguments = example(c.inputs, c.sizes, c.dtype, c.seed)
    r = random.Random(c.seed)
    others = [*other_calls(c.inputs, c.sizes, c.dtype, c.seed, r), *same_tensor_twice(arguments)]
    r.shuffle(others)
    yield "the example", arguments
    for call in others:
        # torch's implementations of attention differ in what they give for infinities. What is out of float16's range, kernels that
        # keep float32 on the way need not round to zero or infinity.
        attends = any(_ATTENTION.search(line) for line in c.modules + c.statements)
        unlike = ("special",) if attends else _OUT_OF_RANGE if s.halves else ()
        if small(call) and not any(word in call[0] for word in unlike):
            yield call


def attempt(module: nn.Module, arguments: list[Any]) -> tuple[Any, Exception | None]:
    try:
        return module(*arguments), None
    except Exception as refused:
        return None, refused


def rounded_otherwise(s: Subject, arguments: list[torch.Tensor]) -> list[Any]:
    """Eager's results for inputs that are moved by about their rounding."""
    by = _ROUNDING_OF_HALVES if s.halves else _ROUNDING[s.composition.dtype]
    results = []
    for seed in range(6):
        g = torch.Generator().manual_seed(seed)
        moved = [
            (t.double() * (1 + by * torch.randn(t.shape, generator=g).double())).to(t.dtype)
            if t.is_floating_point()
            else t
            for t in arguments
        ]
        result, refused = attempt(copy.deepcopy(s.module), moved)
        results += [result] if refused is None else []
    return results


def wrong_with(call: Call, kernel: nn.Module, s: Subject, watch: Watch) -> str:
    """What is wrong with a call of a kernel, or ""."""
    words, arguments = call
    eager_module = copy.deepcopy(s.module)
    kernel.load_state_dict(s.module.state_dict())
    inside = kernel._in_envelope(*arguments)
    if not inside:
        return "the envelope refuses it" if words == "the example" else ""
    eager, refused = attempt(eager_module, arguments)
    if refused is None and any(t.numel() > MOST_RESULT_ELEMENTS for t in tensors(eager)):
        return ""
    watch.guards = memory = guards.Guards()
    placed: dict[int, torch.Tensor] = {}
    for n, t in enumerate(arguments):
        placed.setdefault(id(t), memory.place(t, f"input {n}", torch.device("cpu")))
    given = [placed[id(t)] for t in arguments]
    try:
        with guards.Poisoned(memory):
            got, raised = attempt(kernel, given)
    finally:
        watch.guards = None
    if refused is not None:
        excused = raised is not None or any(words in str(refused) for words in _MAY_BE_TAKEN)
        return "" if excused else f"eager refuses it ({refused}), the kernel does not"
    if raised is not None:
        return f"the kernel raises {type(raised).__name__}: {str(raised)[:300]}"
    if damaged := memory.damaged():
        return "; ".join(damaged)
    exact_module = s.double()
    exact, _ = attempt(exact_module, as_float64(arguments))
    buffers = [[*module.buffers()] for module in (kernel, eager_module, exact_module)]
    return difference(
        (got, buffers[0], given),
        (eager, buffers[1], arguments),
        (exact, buffers[2], as_float64(arguments)) if exact is not None else None,
        lambda: [(result, buffers[1], arguments) for result in rounded_otherwise(s, arguments)],
        TOLERANCE_OF_HALVES if s.halves else TOLERANCE[torch.float32] if s.singles else 0.0,
    )


def tensors(results: Any) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(results) if isinstance(t, torch.Tensor)]


def check(c: Composition, folder: Path, watch: Watch) -> dict[str, Any]:
    s = subject(c, folder)
    arguments = next(calls(s))[1]
    exported = capture(copy.deepcopy(s.module), tuple(arguments))
    gpu = GPU if c.seed % 3 == 0 else None
    try:
        made = synthesize(s.module, exported, class_name="Composition", import_from=s.stem, gpu=gpu)
    except UserError as nothing:
        return {"found": [], "nothing": str(nothing)}
    written = [one for one in made if "CUDA graph" not in one.variant]
    r = random.Random(c.seed)
    chosen = {written[0].variant: written[0], **{one.variant: one for one in r.sample(written, 1)}}
    found = []
    for n, one in enumerate(chosen.values()):
        path = folder / f"{s.stem}_{n}.py"
        path.write_text(one.source)
        kernel = load(path).CompositionTriton().train(c.training).to(c.dtype)
        end = time.process_time() + SECONDS
        for call in itertools.islice(calls(s), CALLS_OF_ANOTHER if n else CALLS):
            with torch.no_grad():
                wrong = wrong_with(call, kernel, s, watch)
            found += [f"{one.variant or 'the kernel'}, {call[0]}: {wrong}"] if wrong else []
            if time.process_time() > end:
                break
    return {"found": found}


def _overtime(*_: Any) -> None:
    raise Overtime(f"it takes more than {LIMIT} s")


def checked(seed: int, watch: Watch) -> dict[str, Any]:
    signal.signal(signal.SIGALRM, _overtime)
    c = drawn(seed, STEPS)
    signal.alarm(LIMIT)
    try:
        with tempfile.TemporaryDirectory() as folder:
            answer = check(c, Path(folder), watch)
    except (Exception, Overtime):
        answer = {"found": [traceback.format_exc()]}
    finally:
        signal.alarm(0)
        for name in [name for name in sys.modules if name.startswith("composition_")]:
            del sys.modules[name]
    return {
        "seed": seed,
        "source": c.source(),
        "sizes": c.sizes,
        "training": c.training,
        "dtype": str(c.dtype),
        **answer,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    repair()
    watch = Watch()
    for line in sys.stdin:
        print(json.dumps(checked(json.loads(line)["seed"], watch)), flush=True)


if __name__ == "__main__":
    main()
