"""Which checks are made, in which order: first what catches most, last what changes the module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import schema
from kernel_lsp.validation import sizes
from kernel_lsp.validation.inputs import Inputs
from kernel_lsp.validation.trees import filled, tensors_of

#: what Triton's interpreter cannot show
INTERPRETER_LIMITS = [
    "races between program instances (the interpreter tries two orders of what they store)",
    "precision of tf32 products and of fast approximations (the interpreter computes them in full)",
    "time (no CUDA GPU here)",
]
#: where it cannot show the example's sizes either
CUT_DOWN = "sizes of the example inputs (they were cut down for the interpreter)"


#: patience of steps that always run, and of those that go first when time is short
ALWAYS, NICE = float("inf"), 0.5


#: the step of calls_outside.py
UNMARKED = "in an unmarked process"
#: inputs that are changed each by itself
_MOST_CHANGED = 3
#: numbers and flags of forward that are tried with another value
_MOST_SETTINGS = 5


#: seconds under the interpreter for a call with all rows of the example
_MANY_ROWS_SECONDS = 1.0
#: for a call of a step that takes more calls to find what others may find
_BOUNDED_SECONDS = 3.0
#: operators that decide between numbers next to each other
_WITH_TIES = ("round", "floor", "ceil", "trunc", "frac", "fmod", "remainder", "sign", "eq", "ge", "gt", "le", "lt")
#: operators that give a boolean for each element
COMPARISONS = (
    *("gt", "lt", "ge", "le", "eq", "ne", "isin"),
    *("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit"),
)
#: operators that read where an integer input says
READS_BY_INDEX = ("embedding", "index", "gather", "take", "nll", "cross_entropy_loss", "index_select")
#: operators that end a GPU's CUDA context for values that they do not take
STOPS_THE_GPU = (*READS_BY_INDEX, "scatter", "put", "one", "bincount", "multinomial", "binary", "assert")
OUT_OF_RANGE = f"{schema.INDICES} (eager raises an error, a kernel returns what lies there)"
#: how the limits begin that are about where results lie in memory
STRIDES = "the strides of its output"
#: operators for which an integer may be an index or a size
_INDEXING = (
    *("embedding", "index", "gather", "scatter", "take", "nll", "cross_entropy", "one_hot", "bincount", "arange"),
    *("repeat", "zeros", "ones", "full", "empty", "pad", "expand", "roll", "slice", "select", "put", "unfold"),
)


@dataclass
class Step:
    """One check. ``perturb`` is the seed that parameters are moved with before it, 0 for not at all."""

    name: str
    make: Callable[[Inputs], Any]
    kind: str = "values"  # or "gradients", "double", "small parameters", "configurations", "calls", "copies", "bounds", "unmarked", "sides"
    perturb: int = 0
    patience: float = 1.0  # the share of the soft time limit after which it is left out
    essential: bool = False  # made whatever the load: before the first verdict where there is time, else after it
    spare: bool = False  # under the interpreter it is left out where time is short: what it finds others find, too, as far as is known
    late: bool = False  # it may take seconds: after the first verdict
    required: bool = False  # the module itself must take these inputs
    inside: bool = False  # inside the envelope: counts for the number of launches
    repeat: bool = False
    decoy: bool = False
    train: bool = False
    beyond: bool = False  # what no graph says that the module takes: a failure there says where it is
    eval_part: str = ""  # of a module in train mode, as modes.put has it
    autocast: str = ""  # the dtype of the autocast that the calls are made under
    dtype: str = ""  # that module and inputs are converted to
    infinite: bool = False  # there are infinities among the inputs
    huge: bool = False  # the inputs are so large that eager may overflow on its way
    most_seconds: float | None = None  # that a call may take under the interpreter before the step is left out
    sizes: dict[str, int] | None = None  # of the dynamic dimensions, where ``make`` takes them
    layout: str = ""  # of the inputs in memory: see Inputs.relaid

    @property
    def needed(self) -> bool:
        """Whether it is never left out for lack of time: there is no final verdict "ok" before it was made.

        The step ``UNMARKED`` is an exception once it has begun: where no unmarked process can be had, or it gives no answer in
        time since the interpreter is slow, kernels are autotuned or the whole time is over, that is a limit (calls_outside.py).
        """
        return self.essential or self.patience == ALWAYS

    @property
    def seeded(self) -> bool:
        """Whether equal random states give equal numbers: in other memory layouts torch gives them to other elements."""
        known = self.kind in ("values", "unmarked") and self.sizes is not None
        return known and not self.layout and not self.train


def reads_by_index(inputs: Inputs) -> bool:
    """Whether an integer among the inputs may be an index that is out of range."""
    return inputs.has_integers and inputs.has_op(*READS_BY_INDEX)


def takes_any_values(inputs: Inputs) -> bool:
    """Whether the module may be called with any values between its operators: without a GPU, or where none of them can stop it."""
    return inputs.device.type == "cpu" or (bool(inputs.ops) and not inputs.has_op(*STOPS_THE_GPU))


def compares(inputs: Inputs) -> bool:
    """Whether the module's graph has a comparison, or is not known."""
    return not inputs.ops or inputs.has_op(*COMPARISONS)


def limits_of_interpreter(inputs: Inputs, small: dict[str, int]) -> list[str]:
    """What Triton's interpreter cannot show; ``small``: the sizes that it gets in place of the example's."""
    return [*INTERPRETER_LIMITS, *([CUT_DOWN] if small != inputs.example_sizes else [])]


def ordered(limits: list[str]) -> list[str]:
    """The limits, each once: those that callers can run into first, those of the machine alone last."""
    of_machine = {*INTERPRETER_LIMITS, CUT_DOWN}

    def rank(limit: str) -> int:
        first = limit.startswith(STRIDES) or limit.endswith(schema.UNSHOWN)
        return 0 if limit == OUT_OF_RANGE else 1 if first else 3 if limit in of_machine else 2

    return sorted(dict.fromkeys(limits), key=rank)


def plan(
    inputs: Inputs,
    mode: str,
    small: dict[str, int] | None = None,
    check_bounds: bool = False,
    unmarked: bool = False,
    other_sides: dict[str, dict[str, int]] | None = None,
) -> list[Step]:
    """The steps for a mode: "gpu" tries the example's own sizes, "interpreter" cuts them down to ``small``.

    ``check_bounds``: the candidate is to raise where an index is out of range. ``unmarked``: there is an unmarked process. ``other_sides``: as
    ``size_branches`` finds them.
    """
    full = dict(inputs.example_sizes)
    small = sizes.small(inputs) if small is None else small
    base = full if mode == "gpu" else small
    # On a GPU the odd sizes are a third of the real ones: large enough for every loop and block of the kernel.
    odd = sizes.odd(inputs, {s: max(2, n // 3) for s, n in full.items()} if mode == "gpu" else small)

    def example(name: str, at: dict[str, int], **how: Any) -> Step:
        return Step(name, lambda i: i.example(at), sizes=at, **how)

    def sample(name: str, at: dict[str, int], distribution: str, seed: int, **how: Any) -> Step:
        return Step(name, lambda i: i.sample(at, distribution, seed), sizes=at, **how)

    steps = [
        example(schema.EXAMPLE, base, required=True, inside=True, patience=ALWAYS),
        sample("random values, moved parameters", base, "normal", 1, perturb=5, inside=True, patience=ALWAYS),
        sample("repeated calls", small, "normal", 14, repeat=True, decoy=True, patience=ALWAYS),
    ]
    if mode == "interpreter":  # the sizes are the same: one step does both
        steps[1].repeat = steps[1].decoy = True
        del steps[2]
    elif odd != base:  # once at full size is enough before the first verdict; the timing compares there again
        steps[1] = sample("odd sizes, moved parameters", odd, "normal", 1, perturb=5, patience=ALWAYS)
    if odd != base and mode == "interpreter":
        steps.append(sample("odd sizes", odd, "normal", 2, patience=ALWAYS))
    if unmarked:  # its process takes a moment to begin
        steps.append(example(UNMARKED, small, kind="unmarked", late=True, patience=ALWAYS))
    if small:
        steps.append(sample("sizes of one", sizes.ones(inputs, small), "normal", 3))
    steps.append(sample("gradients", small, "normal", 4, kind="gradients", essential=True))
    steps += _unusual_values(inputs, small, sample)
    row = sizes.one_row(inputs, small) if mode == "interpreter" else None
    if row:
        steps.append(sample("one row of the example's width", row, "normal", 30, essential=True))
    if mode == "interpreter" and (rows := sizes.all_rows(inputs, small)):
        bounded: dict[str, Any] = {"late": True, "essential": True, "most_seconds": _MANY_ROWS_SECONDS}
        steps.append(sample("all rows of the example", rows, "normal", 42, **bounded))
    steps.append(sample("large values", odd, "large", 20, essential=True))
    steps.append(sample("huge values", small, "huge", 31, huge=True))
    for layout in ("padded", "transposed", "sliced", "expanded"):
        steps.append(
            Step(
                f"{layout} memory",
                lambda i, layout=layout: i.relaid(i.sample(small, "normal", 6), layout),  # type: ignore[misc]
                essential=True,
                sizes=small,
                layout=layout,
            )
        )
    steps.append(sample("tiny values", small, "minute", 21, essential=True))
    for seed, distribution in enumerate(("sparse", "heavy-tailed", "uniform"), 22):
        at = small if seed % 2 or inputs.elements(odd) < inputs.elements(small) else odd
        steps.append(sample(f"{distribution} values", at, distribution, seed, spare=distribution == "heavy-tailed"))
    wide = sizes.wide(inputs, small)
    if wide and wide not in (base, odd):
        steps.append(sample("wide sizes", wide, "normal", 7, patience=NICE, spare=True))
    for text, at in (other_sides or {}).items():
        steps.append(sample(f"the other side of {text}", at, "normal", 56, late=True, essential=True))
        steps[-1].most_seconds = _BOUNDED_SECONDS if mode == "interpreter" else None
    for at in sizes.one_each(inputs, small):
        ones = ", ".join(s for s, n in at.items() if n == 1)
        steps.append(sample(f"size one of {ones}", at, "normal", 8, patience=NICE))
    if empty := sizes.empty(small):
        steps.append(sample("no elements", empty, "normal", 9, essential=True))
    if inputs.again is not None:
        renewed: Callable[[Inputs], Any] = lambda i: i.renewed(7).example(small)  # noqa: E731
        steps.append(Step("example inputs of another seed", renewed, patience=NICE, spare=True))
    steps.append(Step("an extra dimension", lambda i: _unsqueezed(i.sample(small, "normal", 10)), essential=True))
    steps.append(sample("every autotuned configuration", small, "normal", 32, kind="configurations"))
    steps.append(sample("many calls", small, "normal", 33, kind="calls", late=True, essential=True))
    steps.append(sample("a second module", small, "normal", 46, kind="copies", essential=True))
    steps.append(sample("small parameters", small, "tiny", 34, kind="small parameters", essential=True))
    steps += _other_shapes_and_dtypes(inputs, small)
    steps.append(sample("train mode", small, "normal", 12, train=True, essential=True))
    for part, name in (("within", "modules in it in eval mode"), ("itself", "itself in eval mode")):
        steps.append(sample(f"train mode, {name}", small, "normal", 47, train=True, eval_part=part, essential=True))
    steps.append(sample("under autocast", small, "normal", 51, autocast="bfloat16", beyond=True))
    steps.append(sample("attributes of other values", small, "normal", 52, kind="numbers", beyond=True))
    if check_bounds and reads_by_index(inputs):  # late: on a GPU a kernel that does not look may end its process
        steps.append(sample(schema.INDICES, small, "normal", 45, kind="bounds", patience=ALWAYS))
    for seed, dtype in enumerate(("bfloat16", "float16"), 53):
        steps.append(sample(f"converted to {dtype}", small, "normal", seed, kind="converted", dtype=dtype, beyond=True))
    if compares(inputs):  # it is about what those before do not show; the next one leaves the candidate in float64
        steps.append(sample("other sides of comparisons", small, "normal", 55, kind="sides", late=True, essential=True))
    steps.append(sample("float64", small, "normal", 13, kind="double", essential=True))
    for step in steps:
        if not step.needed and not (step.spare and mode == "interpreter"):
            # The verdict must not depend on the load: it is bounded, not left out.
            step.essential = True
            step.most_seconds = _BOUNDED_SECONDS if mode == "interpreter" else None
    return steps


def beside_pinned(inputs: Inputs) -> list[Step]:
    """For a candidate that says it is for the example's sizes only: at others it must run eager, which is right there."""
    small = sizes.small(inputs)
    other = {s: max(2, n - 1) for s, n in small.items()}
    tried = [at for at in (sizes.odd(inputs, small), other) if at != inputs.example_sizes]
    return [
        Step(
            f"other sizes than the example's, {i + 1}",
            lambda _, at=at: inputs.sample(at, "normal", 50),  # type: ignore[misc]
            patience=ALWAYS,
        )
        for i, at in enumerate(tried)
    ]


def _unusual_values(inputs: Inputs, small: dict[str, int], sample: Callable[..., Step]) -> list[Step]:
    """What random numbers of the usual size never show: special values, offsets, ends of integers, other settings."""
    steps = []
    if inputs.has_floats and not inputs.unit_interval:
        steps.append(sample("NaN among the inputs", small, "nan", 35, essential=True))
        steps.append(sample("infinities among the inputs", small, "infinite", 36, essential=True, infinite=True))
        steps.append(sample("a large offset", small, "offset", 37, essential=True))
        steps.append(sample("cancelling values", small, "cancelling", 38, spare=True))
    if inputs.has_floats and inputs.has_op(*_WITH_TIES):
        steps.append(sample("whole and half numbers", small, "halves", 43, essential=True))
    if inputs.ops and inputs.has_integers and not inputs.has_op(*_INDEXING):
        steps.append(Step("large integers", lambda i: i.large_integers(small, 44), sizes=small))
    for name, other in inputs.settings()[:_MOST_SETTINGS]:
        steps.append(
            Step(f"with {name}", lambda _, other=other: other.sample(small, "normal", 39), essential=True)  # type: ignore[misc]
        )
    if inputs.has_integers:
        steps.append(Step("integers at their ends", lambda i: i.ends(small, 40), sizes=small, essential=True))
        steps.append(Step("a negative integer", lambda i: i.negative(small, 41), sizes=small))
    return steps


def _other_shapes_and_dtypes(inputs: Inputs, small: dict[str, int]) -> list[Step]:
    """What eager takes as well, though no graph says so: a dimension less, inputs that are broadcast, other dtypes."""

    def step(name: str, change: Callable[[list[torch.Tensor]], list[Any]]) -> Step:
        def make(i: Inputs) -> Any:
            tree = i.sample(small, "normal", 48)
            return filled(tree, change(tensors_of(tree)))

        return Step(name, make, beyond=True)

    steps = [step("a dimension less", lambda tensors: [t[0] if _long(t) else t for t in tensors])]
    several = range(min(_MOST_CHANGED, len(inputs.leaves))) if len(inputs.leaves) > 1 else range(0)
    for at in several:
        name = inputs.leaves[at].name
        steps.append(step(f"one row of {name}", lambda tensors, at=at: _at(tensors, at, lambda t: t[:1])))  # type: ignore[misc]
        without = lambda tensors, at=at: _at(tensors, at, lambda t: t[0])  # noqa: E731
        steps.append(step(f"{name} without its first dimension", without))
    for dtype in (torch.float16, torch.bfloat16):
        word = str(dtype).removeprefix("torch.")
        steps.append(step(f"inputs in {word}", lambda tensors, to=dtype: [_of_dtype(t, to) for t in tensors]))  # type: ignore[misc]
    for at in several:
        name = inputs.leaves[at].name
        change = lambda tensors, at=at: _at(tensors, at, lambda t: _of_dtype(t, torch.float16))  # noqa: E731
        steps.append(step(f"{name} in float16", change))
    return steps


def _at(tensors: list[torch.Tensor], at: int, change: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
    """One of them changed, where it has rows."""
    return [change(t) if i == at and _long(t) else t for i, t in enumerate(tensors)]


def _long(tensor: torch.Tensor) -> bool:
    return tensor.dim() > 0 and tensor.shape[0] > 0


def _of_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Floats in another dtype, float32 where they have this one."""
    if not tensor.dtype.is_floating_point:
        return tensor
    return tensor.to(torch.float32 if tensor.dtype is dtype else dtype)


def _unsqueezed(tree: Any) -> Any:
    return pytree.tree_map(lambda t: t.unsqueeze(0) if isinstance(t, torch.Tensor) else t, tree)


def shapes(inputs: Inputs, tree: Any) -> str:
    """The shapes of a call's tensors, for people: ``x 5×7 (3, 1)`` with strides where they are not contiguous."""
    tensors = [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]
    parts = []
    for leaf, tensor in zip(inputs.leaves, tensors, strict=True):
        shape = "×".join(map(str, tensor.shape)) or "scalar"
        parts.append(f"{leaf.name} {shape}" + ("" if tensor.is_contiguous() else f" strides {tuple(tensor.stride())}"))
    return ", ".join(parts)
