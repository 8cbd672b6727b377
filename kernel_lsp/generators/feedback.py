"""What a model that converses is told of its candidate: why it is not right, or how far it is from the limit."""

from __future__ import annotations

from kernel_lsp.class_schema import Specimen
from kernel_lsp.schema import CORRECT, ShapeMeasurement, Timing, Validated

_LONGEST = 3000  # characters of a message
_REASON = 1200  # of a reason
_LINE = 160  # of a quoted line
_CONTEXT = 2  # lines quoted before and after the one in question
_NEAR = 0.9  # the share of the roofline from which on little is left to win
_LAUNCH_BOUND = 0.6  # replayed without launches it takes less than this share of the time

_AGAIN = "Answer with the whole corrected code in one Python block: every kernel, launcher and class ModelNew."

_HEADS = {
    "rejected": "Your answer cannot be used",
    "compile-error": "Your kernel does not compile",
    "wrong": "Your kernel compiles and runs, but its result is wrong",
    "crashed": "Your code raised an error or crashed",
    "timeout": "Your code did not end in the time allowed",
    "out-of-memory": "Your code ran out of memory",
    "cheating": "Your answer does not do the work in a Triton kernel",
    "not-drop-in": "Your ModelNew cannot take the place of Model",
}

_HINTS = {
    "wrong": "Look at offsets, masks, the order of dimensions and the value that masked elements count with.",
    "crashed": "Look at the arguments of the launch, at strides, and at offsets beyond the end of a tensor.",
    "timeout": "Look for a loop that does not end, and for a grid of far too many programs.",
    "out-of-memory": "Use smaller blocks, and do not allocate tensors larger than the output.",
    "cheating": "Compute the output in kernels that forward launches, from its arguments and parameters.",
    "not-drop-in": "Keep Model's constructor, and the names and shapes in its state_dict.",
}


def repair(validated: Validated, specimen: Specimen) -> str:
    """The next user message after ``validated``: what was seen, where, and what to change. At most 3,000 characters."""
    parts = _speed(validated, specimen) if validated.verdict.status in CORRECT else _failure(validated)
    text = "\n\n".join(part for part in parts if part)
    room = _LONGEST - len(_AGAIN) - 2
    return f"{text if len(text) <= room else text[: room - 1] + '…'}\n\n{_AGAIN}"


def _failure(validated: Validated) -> list[str]:
    verdict = validated.verdict
    reason = verdict.reason
    if verdict.status == "timeout":  # less what a user may do about it
        reason = reason.partition(". Raise ")[0]
    reason = _cut(reason, _REASON).rstrip(".")
    parts = [f"{_HEADS.get(verdict.status, 'Your answer failed')}: {reason}."]
    parts.append(_excerpt(validated.candidate.source or validated.candidate.answer, verdict.line))
    failed = next((check for check in verdict.checks if not check.passed), None)
    if failed is not None:
        words = f"It failed the check “{failed.name}”"
        if failed.detail and failed.detail not in verdict.reason:
            words += f": {_cut(failed.detail, _REASON)}"
        passed = [check.name for check in verdict.checks if check.passed]
        parts.append(words + (f". It had passed: {', '.join(passed)}." if passed else "."))
    if verdict.status == "wrong" and verdict.error is not None and verdict.eager_error is not None:
        parts.append(f"Largest relative error so far {verdict.error:.2g}, eager's {verdict.eager_error:.2g}.")
    return [*parts, _HINTS.get(verdict.status, "")]


def _excerpt(text: str, line: int | None) -> str:
    """The line in question with its neighbours; the model knows no line numbers, so it is marked instead."""
    lines = text.splitlines()
    if line is None or not 1 <= line <= len(lines):
        return ""
    first = max(1, line - _CONTEXT)
    shown = []
    for number in range(first, min(len(lines), line + _CONTEXT) + 1):
        mark = "  # <-- here" if number == line else ""
        shown.append(_cut(lines[number - 1], _LINE) + mark)
    return "```\n" + "\n".join(shown) + "\n```"


def _speed(validated: Validated, specimen: Specimen) -> list[str]:
    measurement, verdict = validated.measurement, validated.verdict
    shapes = [shape for shape in measurement.shapes if shape.kernel] if measurement else []
    if not shapes:
        missing = measurement.missing if measurement else ""
        return ["Your kernel is correct. Its time was not measured" + (f" ({missing})." if missing else ".")]
    # The example's own sizes come first.
    shape = shapes[0]
    inputs = ", ".join(f"{spec.name} {spec.text}" for spec in shape.inputs or specimen.inputs)
    parts = [f"Your kernel is correct. For {inputs} it takes {_times(shape)}."]
    share = shape.roofline_share
    launches = verdict.launches
    if share is not None and shape.roofline is not None:
        bound = _bound(validated, shape)
        words = f"The roofline is at {_us(shape.roofline)}{bound[1]}: your kernel is {1 / share:.1f} times above it."
        parts.append(words if share < _NEAR else words + " Little is left to win.")
        parts.append(_advice(bound[0], shape, launches))
    else:
        parts.append(_advice("", shape, launches))
    return [*parts, "Make it faster, and keep it correct."]


def _times(shape: ShapeMeasurement) -> str:
    assert shape.kernel is not None
    others = [("eager", shape.eager), ("torch.compile", shape.compiled)]
    told = ", ".join(f"{name} {_us(timing)}" for name, timing in others if timing)
    return _us(shape.kernel) + (f" ({told})" if told else "")


def _bound(validated: Validated, shape: ShapeMeasurement) -> tuple[str, str]:
    """("bytes" or "FLOPs" or "", the same in words): what keeps the device busy longest."""
    device = validated.measurement.device if validated.measurement else None
    transfer = shape.bytes / device.copy_bandwidth if shape.bytes and device and device.copy_bandwidth else 0.0
    compute = shape.flops / device.matmul_rate if shape.flops and device and device.matmul_rate else 0.0
    if not transfer and not compute:
        return "", ""
    if transfer >= compute:
        assert shape.bytes is not None
        return "bytes", f", set by the {_bytes(shape.bytes)} that have to be read and written"
    assert shape.flops is not None
    return "FLOPs", f", set by its {shape.flops / 1e9:.3g} GFLOP"


def _advice(bound: str, shape: ShapeMeasurement, launches: int | None) -> str:
    assert shape.kernel is not None
    tries = []
    if launches is not None and launches > 1:
        tries.append(f"it launches {launches} kernels: put them into one, so that nothing between them goes to memory")
    graph = shape.kernel_graph
    if graph is not None and graph.median < _LAUNCH_BOUND * shape.kernel.median:
        tries.append(
            f"without the host's part it takes {_us(graph)}: launch less, and do less in Python between launches"
        )
    if bound == "bytes":
        tries.append("read every input once, in long contiguous rows, and keep what is used twice in registers")
        tries.append("more elements per program, other block sizes and num_warps (4, 8, 16)")
    elif bound == "FLOPs":
        tries.append("larger tiles for tl.dot (128×128, 128×64), num_stages 3 or 4, num_warps 4 or 8")
        tries.append("group the programs so that neighbours share tiles in the L2 cache")
    return "What to try: " + "; ".join(tries) + "." if tries else ""


def _us(time: Timing | float) -> str:
    microseconds = time.median if isinstance(time, Timing) else time
    return f"{microseconds:.1f} µs" if microseconds < 1000 else f"{microseconds / 1000:.2f} ms"


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
