"""One answer of the candidate against the module's: values, what it did beside computing them, memory it shares, its order.

A step (``checks``) may look at several answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp import errors
from kernel_lsp.validation import agreement, attributes, compare, plan, sampling
from kernel_lsp.validation.guards import unwritten
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.trees import tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.exchange import Answer
    from kernel_lsp.validation.referee import Referee

#: seconds that one launch may take under the interpreter before program instances are left out
LAUNCH_SECONDS = 0.25

#: results that are told apart
_MOST_OUTPUTS = 10_000
#: the largest error of eager's with moved weights that counts elsewhere: by a larger one rounding decides something, and it is no measure
_MOST_MOVED = 0.01


def request(referee: Referee, step: plan.Step) -> dict[str, Any]:
    """A call in which program instances may be left out, and which fails where it takes longer than the step's ``most_seconds``."""
    asked = {"do": "call", "names": list(referee.inputs.names), "launch_seconds": LAUNCH_SECONDS}
    bounded = step.most_seconds is not None and not referee.thorough
    return asked | ({"most_seconds": step.most_seconds} if bounded else {})


def check(
    referee: Referee,
    step: plan.Step,
    answer: Answer,
    reference: Reference,
    tree: tuple[Any, Any],
    eager_error: float,
) -> compare.Comparison:
    """The comparison of its values.

    Raises:
        Failure: anything about the answer is wrong.
        RandomNotComparable: the values differ where the module draws random numbers.
    """
    message, names = answer.message, referee.inputs.names
    where = f"{step.name}, {plan.shapes(referee.inputs, tree)}"
    if message["lazy"]:
        raise referee.failed("cheating", step.name, f"{where}: it returns a {message['lazy'][0]}, not a plain tensor")
    if not message["joined"]:
        reason = "it launches on a stream of its own, which the caller's does not wait for"
        raise referee.failed("wrong", step.name, f"{where}: {reason}")
    if answer.damaged:
        raise referee.failed("wrong", step.name, f"{where}: {answer.damaged[0]}")
    if extra := sorted(set(answer.mutated) ^ set(reference.mutated)):
        does = "changes" if extra[0] in answer.mutated else "does not change"
        contrast = "the module does not" if does == "changes" else "the module does"
        raise referee.failed("wrong", step.name, f"{where}: it {does} {names[extra[0]]}, {contrast}")
    devices = {meta["device"] for meta in answer.metas}
    expected = {t.device.type for t in tensors_of(reference.eager)}
    if devices != expected and devices:
        raise referee.failed("wrong", step.name, f"{where}: its outputs are on {', '.join(sorted(devices))}")
    out = _only_what_ran(referee, step, answer, reference)
    if step.inside and referee.progress.within_1e2 is not False:
        referee.progress.within_1e2 = compare.within(out, agreement.plainly(reference.eager), 1e-2)
    found = agreement.compared(referee, out, reference, eager_error, tree, step.train)
    if not found.passed and step.infinite and (agreement.products(referee) or referee.inputs.has_op("prod", "cumprod")):
        found = agreement.but_for_nan(referee, out, reference, found, tree, step.train)
    if not found.passed and step.huge:
        found = agreement.but_for_overflow(referee, out, reference, found, tree, step.train)
    if not found.passed and not step.inside:  # the example has to tell
        found = agreement.but_for_choices(referee, out, reference, found, tree, step.train)
    if step.inside:
        referee.example_error = max(referee.example_error, found.eager_error)
    if step.perturb:
        referee.moved_error = max(referee.moved_error, min(found.eager_error, _MOST_MOVED))
    if not found.passed and (referee.oracle.seed is not None or _varies(referee, step, tree, found.eager_error)):
        raise errors.RandomNotComparable(class_name=type(referee.module).__name__, detail=found.reason)
    if not found.passed:
        raise referee.failed("wrong", step.name, f"{where}: {found.reason}")
    _aliases(referee, step, message, reference, tree, where)
    for path, theirs in reference.attributes.items():
        if said := attributes.difference(path, message["attributes"].get(path), theirs, names):
            raise referee.failed("wrong", step.name, f"{where}: {said}")
    _strides(referee, step, answer.metas, reference.eager, where)
    draws = referee.oracle.seed is not None or step.train or referee.training
    if message["random"] and not draws:
        raise referee.failed("cheating", step.name, f"{where}: it changes the state of a random generator")
    if step.inside:
        referee.progress.calls = max(referee.progress.calls, calls_in(message))
        referee.progress.launched = (
            message["launches"] if referee.progress.launched is None else referee.progress.launched
        )
        referee.autotuned |= message["autotuned"]
    return found


def calls_in(message: dict[str, Any]) -> int:
    """Launches and torch calls of the call that a trial answers with ``message``."""
    return message["launches"] + sum(count for count, _ in message["operators"].values())  # type: ignore[no-any-return]


def _aliases(
    referee: Referee, step: plan.Step, message: dict[str, Any], reference: Reference, tree: Any, where: str
) -> None:
    """Results share memory with inputs and with each other where the module's do."""
    theirs = {tuple(pair) for pair in reference.aliases}
    inputs = len(tensors_of(tree))
    mine = {(pair[0], pair[1]) for pair in message["aliases"] if len(pair) == 2 and pair[1] < _MOST_OUTPUTS}

    def words(pair: Any) -> str:
        other = referee.inputs.names[pair[1]] if pair[1] < inputs else f"output {pair[1] - inputs}"
        return f"output {pair[0]} shares memory with {other}"

    if extra := sorted(mine - theirs):
        raise referee.failed("wrong", step.name, f"{where}: its {words(extra[0])}, the module's does not")
    if message["kept"] and not reference.kept:
        reason = "its output lies in the memory of an earlier output, which the caller may still use"
        raise referee.failed("wrong", step.name, f"{where}: {reason}")
    if step.inside and (less := sorted(theirs - mine)):
        referee.progress.limits.append(f"memory that results share: the module's {words(less[0])}, its own does not")


def _varies(referee: Referee, step: plan.Step, tree: Any, eager_error: float) -> bool:
    """Whether eager itself gives other numbers for the same inputs, and not for its rounding: it has a generator of its own."""
    try:
        a, b = (referee.oracle.answer(tree, step.train).eager for _ in range(2))
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return False
    return not compare.agree(agreement.plainly(a), agreement.plainly(b), eager_error).passed


def _only_what_ran(referee: Referee, step: plan.Step, answer: Answer, reference: Reference) -> Any:
    """Where program instances were left out, what they would have written is taken as right, and that is said."""
    out = answer.tree
    run, total = answer.message.get("instances") or (0, 0)
    if run >= total:
        return out
    if answer.seconds < sampling.LEAST * LAUNCH_SECONDS:
        raise referee.failed("cheating", step.name, f"{step.name}: it says that time was short, which it was not")
    share = run / total
    for a, b in zip(tensors_of(out), tensors_of(reference.eager), strict=False):
        if a.shape == b.shape and a.dtype == b.dtype:
            missing = unwritten(a)
            if a.numel() and 1 - missing.double().mean().item() >= 0.25 * share:  # else it writes too little
                a[missing] = b[missing]
    referee.progress.sampled.append(share)
    return out


def _strides(referee: Referee, step: plan.Step, metas: list[dict[str, Any]], eager: Any, where: str) -> None:
    """Where the module's results are contiguous a candidate's have to be; other orders of memory are but noted."""
    for meta, theirs in zip(metas, tensors_of(eager), strict=False):
        if theirs.numel() > 1 and meta["stride"] != list(theirs.stride()) and 1 not in theirs.shape:
            if step.inside and theirs.is_contiguous():
                reason = f"its output has strides {meta['stride']}, the module's is contiguous"
                raise referee.failed("wrong", step.name, f"{where}: {reason}")
            mine = torch.empty_strided(theirs.shape, meta["stride"], device="meta")
            at = "" if step.inside else f" for inputs in another memory layout ({step.name})"
            limit = f"{plan.STRIDES}{at}: in memory it is {_memory(mine)}, eager's is {_memory(theirs)}"
            if limit not in referee.progress.limits:
                referee.progress.limits.append(limit)
            return


def _memory(tensor: torch.Tensor) -> str:
    """The order of a tensor's elements in memory, in torch's words where it has some."""
    if tensor.is_contiguous():
        return "contiguous"
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(tensor.dim())
    if last is not None and tensor.is_contiguous(memory_format=last):
        return "channels last"
    strides = tensor.stride()
    order = sorted(range(tensor.dim()), key=lambda dim: -strides[dim])
    dense = tensor.permute(order).is_contiguous()
    return f"in the order of dims {', '.join(map(str, order))}{'' if dense else ', with gaps'}"
