"""The data that flows between the rooms: one schema on the wire, in the store and in ``--json``.

Plain dataclasses and the standard library alone, because the worker side imports this in the user's
interpreter. What is about a class by itself stands in ``class_schema.py``. ``to_json`` and ``from_json`` are the
only conversions. Times are microseconds, sizes bytes, shapes lists of integers; a quantity that was not measured is
``None``, never a zero.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Literal

from kernel_lsp.class_schema import Specimen, TensorSpec

Status = Literal[
    "ok",
    "rejected",
    "compile-error",
    "wrong",
    "crashed",
    "timeout",
    "out-of-memory",
    "cheating",
    "outdated",
    "not-drop-in",
    "slower",
]

#: Statuses in which the candidate computes what the module computes.
CORRECT: frozenset[str] = frozenset({"ok", "slower"})
#: the check on the example inputs, in full
EXAMPLE = "example inputs"
#: why a candidate is "cheating" that runs eagerly
NO_LAUNCH = "it launches no Triton kernel for the example inputs"
#: in the reason of one with kernels beside torch's operators, which are those of the module
SAVES_NOTHING = "its Triton kernels save none of that"
#: in the reason of an "outdated" verdict: what was found follows it, in parentheses
GENERATE_AGAIN = "generate it again"
#: the variant of a model's answer that is proposed once more for the example's sizes alone
NARROWED = "the example's sizes only"


@dataclass
class Target:
    """What a job is about: a class in a document at a version."""

    uri: str
    class_name: str
    version: int | None = None
    fingerprint: str = ""


@dataclass
class Candidate:
    """One proposed kernel file, without its header."""

    source: str
    generator: str
    note: str = ""  # for instance "3 of 4 ops in Triton"
    prompt_hash: str | None = None
    parent: int | None = None  # index in Report.candidates of the one that it repairs, speeds up or narrows
    variant: str = ""  # what distinguishes it from its siblings: "num_warps=8"
    answer: str = ""  # what the language model wrote, whole
    seed: int | None = None  # that it was drawn with
    pinned: bool = False  # stands for the module at the example's sizes only
    narrowed: bool = False  # its parent's answer once more, pinned
    arithmetic: str = ""  # where it computes in another one than its siblings: it may be right where they are not
    precision: str = "strict"  # the setting under which it was written, and is validated
    kept: dict[str, int] = field(default_factory=dict)  # ATen operators that stay with torch → how often
    faults: list[dict[str, Any]] = field(
        default_factory=list
    )  # errors.LoweringFailed and WayFailed of the synthesizer, as on the wire


@dataclass
class Check:
    """One thing that validation looked at. ``detail`` says what was seen, also when it passed."""

    name: str
    passed: bool
    detail: str = ""


@dataclass
class CompiledKernel:
    """What the compiler says of one kernel of a candidate. Spills and stack are bytes per thread."""

    name: str
    target: str  # for instance "cuda:90"
    registers: int | None = None
    spills: int | None = None
    shared: int | None = None
    num_warps: int | None = None


#: schedules of a kernel that are timed at most; the synthesizer names the likeliest first
MOST_TIMED = 6

#: how a limit of a verdict begins that goes away once the checks that were put off are made
STILL = "still to be checked: "
#: how a limit ends about a side of a comparison in forward that comes into no result that was compared
UNSHOWN = "(no input shows it)"
#: how a limit begins of kernels that read where an index says, and the name of the check of these
INDICES = "indices out of range"
#: how a limit begins that says why the compiler's registers and errors are not known without a GPU
NOT_COMPILED = "compiling for a GPU: "
#: what is said then where it was stopped; ``{seconds:.0f}`` is for how long it was given
COMPILING_STOPPED = "stopped after {seconds:.0f} s; validate again while the machine is less busy"


@dataclass
class Timing:
    """Median and spread (the 20th and 80th percentile) of one way to run the module, in microseconds."""

    median: float
    low: float
    high: float
    runs: int


@dataclass
class OfExample:
    """What a validation found with one of several examples. ``status`` is "eager" where no envelope of the kernel holds for it."""

    inputs: str  # "x: bfloat16[x_0, 4096]"
    status: Status | Literal["eager"] = "ok"
    reason: str = ""
    error: float | None = None  # on these inputs alone, where that is known; else as in Verdict
    eager_error: float | None = None
    eager: Timing | None = None
    kernel: Timing | None = None
    envelope: int = 0  # as in Verdict


@dataclass
class Side:
    """A side of a comparison in forward."""

    text: str  # "x > 6 at model.py:12"
    number: int  # of the comparisons there in one call, from 1
    shown: bool  # whether it came into a result that was compared

    @property
    def limit(self) -> str:
        """The limit of a verdict where it is not shown."""
        return f"where {self.text} {UNSHOWN}"


@dataclass
class Verdict:
    """Whether a candidate computes what the module computes, and how that was found out."""

    status: Status
    reason: str = ""
    line: int | None = None  # 1-based line in the candidate's source
    mode: Literal["gpu", "interpreter", "none"] = "none"
    checks: list[Check] = field(default_factory=list)
    error: float | None = None  # largest relative error against the float64 oracle
    eager_error: float | None = None  # the same for the eager module
    error_check: str = ""  # the name of the check in which ``error`` was
    precision: str = ""  # "fp32", "bf16", … by the dtype; "tf32" or "half" of float32 that is ``held_to`` it
    launches: int | None = None  # Triton launches in one call
    envelope: int = 0  # which of several holds for the example inputs, from 1; 0 where there is but one, or none holds
    kernels: list[CompiledKernel] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)  # what could not be checked here, and why
    # Whether the outputs for the example inputs agree with eager's by atol = rtol = 1e-2, the standard of most
    # published KernelBench figures; None where that was not compared. ``status`` follows the strict standard alone.
    within_1e2: bool | None = None
    sides: list[Side] = field(default_factory=list)  # of comparisons, where inputs that show them were searched for
    skipped: list[str] = field(default_factory=list)  # checks that were left out since time was short
    held_to: str = "strict"  # the setting ``precision`` under which it was validated
    keeps_packed_weights: bool = False  # the kernel keeps what it computes of parameters alone from call to call
    example_error: float | None = None  # as ``error``, on the example inputs alone; None where that is not known
    example_eager_error: float | None = None
    # Of a class with several examples what was found with each; all else is about all of them, but for what is of one call.
    examples: list[OfExample] = field(default_factory=list)


@dataclass
class ShapeMeasurement:
    """Times at one set of input shapes."""

    inputs: list[TensorSpec]
    eager: Timing | None = None
    compiled: Timing | None = None
    kernel: Timing | None = None
    kernel_graph: Timing | None = None  # replayed from a CUDA graph: no launch overhead
    eager_graph: Timing | None = None
    bytes: int | None = None
    flops: int | None = None
    roofline: float | None = None  # microseconds that bytes and FLOPs need at the device's measured rates
    roofline_share: float | None = None  # roofline / kernel median
    bandwidth_share: float | None = None  # achieved bytes/s over the measured copy bandwidth
    spans: dict[str, float] = field(default_factory=dict)  # each GPU kernel of a call → microseconds, by the profiler
    # torch.compile in other modes than its default: "reduce-overhead", "max-autotune".
    compiled_modes: dict[str, Timing] = field(default_factory=dict)
    # Times of torch.compile that were kept, or measured in another process or beside other work: mode → what is said of it.
    kept: dict[str, str] = field(default_factory=dict)
    calls: int | None = None  # that a recorded program made with these shapes; None where it was not seen to make any
    text: str = ""  # of a recorded call, all that forward is given: "float32[8, 512], causal=True"


@dataclass
class Device:
    """Where something ran. ``copy_bandwidth`` in bytes per second, measured there; ``memory`` in bytes."""

    name: str
    kind: Literal["cuda", "interpreter", "none"]
    capability: str = ""
    copy_bandwidth: float | None = None
    matmul_rate: float | None = None  # FLOP/s, measured, of the fastest way to the precision the module runs in
    python: str = ""
    torch: str = ""
    triton: str = ""
    driver: str = ""
    memory: int | None = None


@dataclass
class Tried:
    """A schedule variant in a tuning: its time, or the reason why it was not timed. ``spills``: bytes per thread."""

    variant: str = ""  # as in Candidate; "" for the default
    reason: str = ""
    spills: int | None = None
    timing: Timing | None = None
    fastest: bool = False
    mixed: float | None = None  # microseconds of a call over the recorded shapes, weighted by calls


@dataclass
class Ratio:
    """A time over another one, by the median of rounds in which both were taken, with a confidence interval of 99 %."""

    value: float
    low: float
    high: float
    rounds: int


@dataclass
class SpeedComparison:
    """A kernel beside the one before it, timed in turn in one run. ``missing`` says why that was not done."""

    now: Timing | None = None
    before: Timing | None = None
    eager: Timing | None = None
    ratio: Ratio | None = None  # now over before: above 1 it became slower
    missing: str = ""
    body: str = ""  # of the one before, its hash
    reached_at: str = ""  # when that was validated: ISO 8601, UTC
    changed: str = ""  # what is another now: "kernel, torch 2.11.0 → 2.13.0"
    beside: str = ""  # other work on the GPU meanwhile, as in Measurement


@dataclass
class RecordedMix:
    """What the recorded shapes of a measurement stand for. Each has its ``calls``."""

    source: str = ""  # the programs that made the calls: "train.py"
    share: float | None = None  # of the time that was recorded for the class, what these shapes took
    left_out: list[str] = field(default_factory=list)  # shapes that were not timed, each with the reason


#: how ``Measurement.missing`` begins where other work on the machine, or what was timed, made the times ones that cannot be
MEASURING_ERROR = "measuring error"


@dataclass
class Measurement:
    """Times of eager, torch.compile and the kernel.

    ``missing`` says why something was not measured, and ``compiled_missing`` why torch.compile was not, in words that each surface adapts
    where it shows them (``UserError.neutral``).

    The first of ``shapes`` is the example's; those that ``kernel-lsp record`` saw, and no other, come after it.
    """

    shapes: list[ShapeMeasurement] = field(default_factory=list)
    device: Device | None = None
    missing: str = ""
    compiled_missing: str = ""
    measured_at: str = ""  # ISO 8601, UTC
    beside: str = ""  # other work on the GPU meanwhile: "87 % busy by pid 4711 (python)"
    comparison: SpeedComparison | None = None  # of a validation: with the fastest kernel before it, where there was one
    recorded: RecordedMix | None = None  # None where nothing was recorded that could be timed


@dataclass
class Validated:
    """A candidate with what became of it."""

    candidate: Candidate
    verdict: Verdict
    measurement: Measurement | None = None


#: generators that ask no language model
WITHOUT_A_MODEL = ("recall", "synthesizer")


@dataclass
class Source:
    """What one generator came up with in a job."""

    generator: str
    model: str = ""  # for instance "facebook/KernelLLM"
    device: str = ""  # where the model ran: "cuda:0", "cpu", "remote"
    expected: int | None = None  # how many it set out to propose
    samples: int = 0  # candidates proposed, or answers of a model, usable or not
    equal_to: list[int] = field(default_factory=list)  # entries of the report that others of its samples repeat
    not_validated: int = 0  # of those, the ones left out when the time was over, or there was no need
    correct: int = 0
    best: float | None = None  # times eager, of the fastest correct one
    rounds: int = 0  # of repair
    prompt_tokens: int | None = None
    tokens: int = 0  # of all answers
    tokens_per_second: float | None = None
    seconds: dict[str, float] = field(default_factory=dict)  # "load", "generate"
    problem: str = ""  # why nothing came of it, or why it stopped


@dataclass
class Report:
    """All candidates of one job, the chosen one and why."""

    target: Target
    specimen: Specimen | None = None
    further: list[Specimen] = field(default_factory=list)  # with the first example in each further envelope
    device: Device | None = None
    candidates: list[Validated] = field(default_factory=list)
    chosen: int | None = None
    why: str = ""
    regression: str = ""  # of a validation: how much slower than the fastest kernel before it
    before: str = ""  # of a validation: what was known before, by this machine or by the file's own word alone
    warnings: list[str] = field(default_factory=list)  # what went wrong beside, and changes no verdict
    file: str | None = None
    sources: list[Source] = field(default_factory=list)  # in the order in which they were asked
    tried: list[Tried] = field(default_factory=list)  # the schedule variants of one kernel, the validated one first
    seconds: dict[str, float] = field(default_factory=dict)  # stage → seconds since the command
    spent: dict[str, float] = field(
        default_factory=dict
    )  # part of the validation → seconds in the worker; "waiting": for the GPU
    # Greatest use of memory that was seen, in bytes: "device" (all processes on it), "host" (the worker and its children).
    memory: dict[str, int] = field(default_factory=dict)

    @property
    def of_models(self) -> list[Source]:
        """The sources that asked a language model, or should have."""
        return [one for one in self.sources if one.generator not in WITHOUT_A_MODEL and (one.model or one.problem)]


def to_json(record: Any) -> Any:
    """A dataclass as plain JSON data."""
    return dataclasses.asdict(record)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields; finding them takes longer than all else that ``from_json`` does."""
    return typing.get_type_hints(kind)


def from_json(kind: type, data: Any) -> Any:
    """The dataclass ``kind`` from what ``to_json`` gave; unknown keys are ignored, so that newer peers may add some."""
    if data is None:
        return None
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        inner = [k for k in typing.get_args(kind) if k is not type(None)]
        return from_json(inner[0], data) if len(inner) == 1 else data
    if origin is list:
        (inner_kind,) = typing.get_args(kind)
        return [from_json(inner_kind, item) for item in data]
    if origin is dict and dataclasses.is_dataclass(typing.get_args(kind)[1]):
        return {key: from_json(typing.get_args(kind)[1], item) for key, item in data.items()}
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return kind(
            **{f.name: from_json(hints[f.name], data[f.name]) for f in dataclasses.fields(kind) if f.name in data}
        )
    return data


def finite(value: Any) -> Any:
    """JSON data with null for NaN and the infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
