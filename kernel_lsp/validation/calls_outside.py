"""The same calls in a process that looks like the user's own program, to find a candidate that is right only under validation.

The referee asks for an unmarked process (worker/unmarked_process.py) over a socket, in messages of bytes like the trial's. What comes
from it is bounded and compared, and believed in nothing. Where it differs from what the module gives, the trial is
asked the same: a candidate that is right there and wrong here is cheating.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.validation import agreement, answers, candidate_state, channel, failures, memory, plan, sizes
from kernel_lsp.validation.chunks import identical
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.trees import tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: how often each call is made
_TIMES = 2
#: seconds after which the program makes no further calls, and for which it is waited once the candidate runs
_CALLS_SECONDS = {"interpreter": 1.0, "gpu": 3.0}
_MOST_SECONDS = {"interpreter": 15.0, "gpu": 60.0}
#: the same where Triton's interpreter is slow for this kernel: there no program instances can be left out
_SLOW_SECONDS = 4.0
#: seconds that float64 on slices may take
_EXACT_SECONDS = 0.15
#: seconds for the process to begin, the import of the user's module included
_BEGIN_SECONDS = 20.0
#: bytes of weights that are sent, and of a GPU's memory that has to be left beside them
_MOST_WEIGHTS, _LEFT = 2 << 30, 1 << 30

_ELSEWHERE = "in an unmarked process it computes something else than where it is validated"


@dataclass
class UnmarkedProcess:
    """How unmarked processes are asked for, and what they are told of the candidate: its file in use, and its class."""

    channel: channel.Channel
    kernel: str
    kernel_class: str
    asked: list[_Call] | None = None  # the calls whose results have not been looked at
    sampled: bool = False  # whether the interpreter was too slow for other sizes than one when they were asked for

    def close(self) -> None:
        """Let go of it: what still runs there is ended."""
        self.channel.socket.close()


@dataclass
class _Call:
    tree: tuple[Any, Any]
    reference: Reference


class _NotThere(Exception):
    """No unmarked process could be had; the argument says why."""


def ask(referee: Referee, step: plan.Step) -> None:
    """Have the candidate called there on the example's values and on random ones at another size.

    Its process begins while other checks go on; ``check`` waits for what it says.
    """
    assert referee.unmarked is not None
    _drop(referee)
    if why := _not_now(referee):
        referee.progress.limits.append(f"{step.name} ({why})")
        return
    referee.unmarked.sampled = bool(referee.progress.sampled)
    calls = _calls(referee, step)
    if calls and _sent(referee, calls, words=False):
        referee.unmarked.asked = calls


def check(referee: Referee, step: plan.Step, in_the_trial: Callable[[tuple[Any, Any], Reference], None]) -> None:
    """Compare what came of the calls that were asked for, if any were.

    ``in_the_trial`` makes a call there and raises Failure where that is wrong.

    Raises:
        Failure: in the unmarked process it gives something else than in the trial.
    """
    if referee.unmarked is None or referee.unmarked.asked is None:
        return
    calls, referee.unmarked.asked = referee.unmarked.asked, None
    try:
        with referee.spending(step.name):
            found = _found(referee, step, calls)
    except _NotThere as missing:
        referee.progress.limits.append(f"{step.name} ({missing})")
        return
    for call, (out, mutated) in zip([call for call in calls for _ in range(_TIMES)], found, strict=False):
        where = plan.shapes(referee.inputs, call.tree)
        reason = _difference(referee, call, out, mutated)
        if reason:
            candidate_state.reload(referee)  # the checks since have converted and trained what is there
            in_the_trial(call.tree, call.reference)
            raise referee.failed("cheating", step.name, f"{_ELSEWHERE}: {where}: {reason}")
    if referee.unmarked.sampled:
        referee.progress.limits.append(f"{step.name}: at other sizes than one, for which the interpreter is too slow")
    referee.passed(step.name, f"{len(found)} calls give what they give where it is validated")


def _drop(referee: Referee) -> None:
    """Wait for what was asked of another candidate, which failed before this was looked at."""
    assert referee.unmarked is not None
    calls, referee.unmarked.asked = referee.unmarked.asked, None
    if calls is not None:
        with contextlib.suppress(_NotThere, failures.Failure):
            _answer(referee, _room(calls))


def _room(calls: list[_Call]) -> int:
    """Bytes of the results."""
    return sum(memory.size(t) for call in calls for t in tensors_of((call.tree, call.reference.eager))) * _TIMES


def _not_now(referee: Referee) -> str:
    """Why no unmarked process is asked for; else ""."""
    if referee.unmarked is None or referee.unmarked.channel.socket.fileno() < 0:
        return "it was stopped before"
    held = memory.of_state(referee.module)
    if held > _MOST_WEIGHTS:
        return f"the weights take {memory.text(held)}"
    if referee.mode == "gpu":
        memory.release()
        there = memory.free([torch.empty(0, device=referee.inputs.device)])
        if there < 2 * held + _LEFT:
            return f"{memory.text(there)} of the GPU's memory were left"
    return ""


def _calls(referee: Referee, step: plan.Step) -> list[_Call]:
    """The calls that the module itself takes, with its answers."""
    assert referee.unmarked is not None
    small, inputs = step.sizes or {}, referee.inputs
    if referee.unmarked.sampled:
        makers = [lambda: inputs.example(sizes.ones(inputs, small))]
    else:
        makers = [lambda: step.make(inputs)]
        odd = sizes.odd(inputs, small)
        if odd != small:
            makers.append(lambda: inputs.sample(odd, "normal", 51))
    calls = []
    for make in makers:
        try:
            tree = make()
            calls.append(_Call(tree, referee.oracle.answer(tree, seconds=_EXACT_SECONDS)))
        except torch.OutOfMemoryError:
            raise
        except Exception:
            continue
    return [call for call in calls if not call.reference.need]  # without float64 it was looked at elsewhere


def _found(referee: Referee, step: plan.Step, calls: list[_Call]) -> list[tuple[Any, list[int]]]:
    """What came of the calls: results, and which inputs were changed.

    Raises:
        Failure: the candidate failed there, or gave another answer than was asked for.
        _NotThere: no unmarked process could be had.
    """
    try:
        answer, tree = _answer(referee, _room(calls))
    except failures.Failure as failure:
        # A launcher that asks for memory of a GPU by name needs torch to take that for the CPU's.
        if referee.mode != "interpreter" or not _sent(referee, calls, words=True):
            raise referee.failed(failure.status, step.name, failure.reason, failure.line) from None
        try:
            answer, tree = _answer(referee, _room(calls))
        except failures.Failure as second:
            raise referee.failed(second.status, step.name, second.reason, second.line) from None
    if answer or not isinstance(tree, list) or not 1 <= len(tree) <= _TIMES * len(calls):
        raise referee.failed("cheating", step.name, "in an unmarked process it gives another answer than was asked for")
    found = []
    for call, one in zip([call for call in calls for _ in range(_TIMES)], tree, strict=False):
        if not isinstance(one, list) or len(one) != 3:
            raise referee.failed(
                "cheating", step.name, "in an unmarked process it gives another answer than was asked for"
            )
        out, args, kwargs = pytree.tree_map(lambda value: channel.moved(value, referee.inputs.device), one)
        found.append((out, _mutated(call.tree, (args, kwargs))))
    return found


def _sent(referee: Referee, calls: list[_Call], words: bool) -> bool:
    """Ask for the calls. ``words``: torch takes a GPU's name for the CPU's. False where there is no unmarked process to ask."""
    assert referee.unmarked is not None
    if referee.unmarked.channel.socket.fileno() < 0:
        return False
    text = referee.trial.text()
    inputs = [[list(call.tree[0]), dict(call.tree[1])] for call in calls for _ in range(_TIMES)]
    message = {
        "name": _name(referee.unmarked.kernel),
        "path": referee.unmarked.kernel,
        "text": text,
        "class": referee.unmarked.kernel_class,
        "seed": referee.oracle.seed,
        "seconds": _CALLS_SECONDS[referee.mode],
        "words": words,
    }
    with contextlib.suppress(channel.Closed):  # shows when its answer is waited for
        referee.unmarked.channel.send(message, [dict(referee.module.state_dict()), referee.oracle.moving(), inputs])
    return True


def _answer(referee: Referee, room: int) -> tuple[dict[str, Any], Any]:
    """What the unmarked process says, which has ended then; ``room``: bytes of results.

    Raises:
        Failure: the candidate failed there, hung up, or took too long.
        _NotThere: no unmarked process could be had.
    """
    assert referee.unmarked is not None
    end = referee.unmarked.channel
    try:
        said, _, _ = end.receive(_left(referee, _BEGIN_SECONDS), 0)
        if "ready" not in said:
            end.receive(_left(referee, _BEGIN_SECONDS), 0)
            raise _NotThere(f"it could not be started: {answers.cleaned(str(said.get('missing', '')), 200)}")
    except (channel.TooLate, channel.Closed, ValueError) as error:
        referee.unmarked.close()
        raise _NotThere(f"it could not be started: {type(error).__name__}") from None
    try:  # from here on a candidate runs there: what it does to this conversation speaks against it
        return _heard(referee, end, room)
    except channel.TooLate:
        referee.unmarked.close()
        tunes = referee.mode == "gpu" and candidate_state.autotunes(
            referee
        )  # without the trial's cache, each configuration anew
        if referee.unmarked.sampled or tunes or time.monotonic() >= referee.trial.deadline:
            raise _NotThere("it takes too long there") from None
        raise failures.Failure("timeout", "in an unmarked process it gave no answer, and was stopped") from None
    except channel.Closed:
        referee.unmarked.close()
        raise failures.Failure("cheating", "in an unmarked process it hung up on the referee") from None
    except ValueError as error:
        referee.unmarked.close()
        reason = f"in an unmarked process it sent a malformed answer: {answers.cleaned(str(error), 120)}"
        raise failures.Failure("cheating", reason) from None


def _heard(referee: Referee, end: channel.Channel, room: int) -> tuple[dict[str, Any], Any]:
    """What came out, once the process has ended.

    Raises:
        Failure: the candidate failed, or its process ended.
        TooLate, Closed, ValueError: as ``receive``.
    """
    assert referee.unmarked is not None
    seconds = _left(referee, _SLOW_SECONDS if referee.unmarked.sampled else _patience(referee))
    until = time.monotonic() + seconds
    answer, tree, _ = end.receive(seconds, room)
    if "ended" in answer:
        how = answers.cleaned(answer["ended"], 120)
        status = "out-of-memory" if "memory" in how else "crashed"
        raise failures.Failure(status, f"in an unmarked process it ended: {how}")
    end.receive(max(0.0, until - time.monotonic()), 0)  # that it has ended
    if "failed" in answer:
        failure = answers.failure(answer["failed"])
        # The trial has interpreted it.
        status = "crashed" if failure.status == "not-interpretable" else failure.status
        raise failures.Failure(status, f"in an unmarked process: {failure.reason}", failure.line)
    return answer, tree


def _patience(referee: Referee) -> float:
    """Seconds for the calls there: more where checks take long in the trial, too, though none that end with the whole time."""
    slow = 3 * max(referee.progress.seconds, default=0.0)
    return max(_MOST_SECONDS[referee.mode], min(slow, referee.trial.deadline - time.monotonic() - 1))


def _left(referee: Referee, seconds: float) -> float:
    return max(0.0, min(seconds, referee.trial.deadline - time.monotonic()))


def _name(kernel: str) -> str:
    """What a program imports a kernel file as: ``kernels.rms_norm_triton``."""
    folder, _, file = kernel.replace("\\", "/").rpartition("/")
    package, stem = folder.rpartition("/")[2], file.removesuffix(".py")
    return f"{package}.{stem}" if package.isidentifier() and stem.isidentifier() else stem


def _mutated(before: Any, after: Any) -> list[int]:
    mine, theirs = tensors_of(after), tensors_of(before)
    if len(mine) != len(theirs):
        return [-1]
    return [
        i
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True))
        if a.shape != b.shape or a.dtype != b.dtype or not identical(a, b)
    ]


def _difference(referee: Referee, call: _Call, out: Any, mutated: list[int]) -> str:
    """How the results differ from the module's; "" where they do not."""
    if mutated != call.reference.mutated:
        return "it changes other inputs than the module"
    return agreement.compared(referee, out, call.reference, 0.0, call.tree).reason
