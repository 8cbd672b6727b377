"""Schedule variants of a validated kernel: compiled at once, checked against the module at the example's sizes, timed together.

No variant pays a validation. Each must give what the validated one gives before it is timed; the winner is validated in
full afterwards, since another schedule may still be wrong elsewhere.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from kernel_lsp import child_processes, schema
from kernel_lsp.validation import (
    agreement,
    answer_checks,
    candidate_state,
    failures,
    measuring,
    memory,
    recorded,
    roofline,
    tied_indices,
)
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.progress import Progress
from kernel_lsp.validation.referee import Referee
from kernel_lsp.validation.slices import Part
from kernel_lsp.validation.trees import without_memory
from kernel_lsp.validation.trial_connection import TrialConnection

#: share by which another variant has to be faster than the validated one to be worth a validation of its own
WORTH = 0.02
#: processors from which variants are compiled while the first is checked
_LEAST_PROCESSORS = 8
#: Variants are compiled at once until they have so many kernels together, by ``@triton.jit`` in their text, then the next ones. No further ones
#: are begun after this share of the time that is left: those of a deep network take minutes on a busy machine, and the checks of the fastest follow.
_TOGETHER, _COMPILING = 64, 0.4
#: kernels of a group where time is short, at the least
_LEAST_TOGETHER = 12
#: how the reason begins where every variant fails there, or computes something else than the module
NONE_FIT = "none of them could be used at the example's sizes"
#: bytes of spilled registers a thread beyond which a variant is not timed
MOST_SPILLED = 1024


def tune(
    referee: Referee,
    trial: TrialConnection,
    sources: list[str],
    specimen: dict[str, Any],
    rates: dict[str, float] | None,
    emit: Callable[[str, Any], None],
) -> tuple[schema.Measurement, dict[str, float], list[schema.Tried]]:
    """The fastest variant's measurement against eager, the device's rates, and what became of each variant.

    ``sources``: paths of the candidates' files, the validated one first. ``trial``: a trial of its own for all of them. The measurement is
    of the variant marked ``fastest``.

    Raises:
        Failure: not even the first can be timed.
    """
    torch.cuda.set_device(referee.inputs.device)
    validated = referee.trial
    with referee.talking_to(trial):
        with referee.spending("tuning: load and compile"):
            emit("progress", {"stage": "tune", "message": f"compiling {len(sources)} schedules", "fraction": 0.3})
            with _progress_of_its_own(referee):
                tried = load(referee, sources)
        emit("progress", {"stage": "tune", "message": "checking the schedules", "fraction": 0.5})
        with referee.spending("tuning: check"):
            calls = check(referee, tried)
            with referee.talking_to(validated), contextlib.suppress(failures.Failure):
                referee.settle()
        # From here on nothing of ours is compiled: times are taken.
        if not rates:
            with referee.alone():
                rates = roofline.rates()
        referee.beyond = rates.get("beyond")
        names = [str(i) for i, one in enumerate(tried) if not one.reason][: schema.MOST_TIMED]
        if not names:
            raise failures.Failure("crashed", f"{NONE_FIT} (the first one: {tried[0].reason})")
        emit("progress", {"stage": "tune", "message": f"timing {len(names)} schedules", "fraction": 0.7})
        with referee.spending("tuning: time"), referee.alone():
            return *_time(referee, tried, names, calls, specimen, rates), tried


def processors_to_spare() -> bool:
    """Whether variants can be compiled beside the checks of the first without that having to wait."""
    return child_processes.processors() >= _LEAST_PROCESSORS


def begin_early(referee: Referee, trial: TrialConnection, sources: list[str]) -> None:
    """``begin`` in ``trial`` while the first candidate is checked, where memory is to spare for it."""
    if referee.recorded is None and referee.has_room():
        with referee.talking_to(trial), contextlib.suppress(failures.Failure):  # it is met again where it counts
            begin(referee, sources)
            referee.compiling = trial


def begin(referee: Referee, sources: list[str], all_needed: bool = False) -> None:
    """Have every variant imported, and the launches of all of them compiled: of as many as there is time for, unless ``all_needed``."""
    for i, path in enumerate(sources):
        referee.begin({"do": "load", "path": path, "training": referee.training})
        referee.begin({"do": "keep", "name": str(i)})
    cases = [*candidate_state.cases(referee, [dict(referee.inputs.example_sizes)]), *recorded.cases(referee)]
    seconds = _COMPILING * max(0.0, referee.trial.deadline - time.monotonic())
    at_once = _at_once(seconds, referee.spent.get("compile (part of load)", 0.0), _kernels(sources[0]))
    groups = [[str(i) for i in range(len(sources))]] if all_needed else _groups(sources, at_once)
    referee.begin({"do": "precompile_variants", "cases": cases, "groups": groups, "seconds": seconds})


def _at_once(seconds: float, compiling: float, kernels: int) -> int:
    """How many kernels are compiled at once: ``_TOGETHER``, or as many as take half of ``seconds``, after which no further ones are begun.

    ``compiling``: seconds that those of the first candidate took, which has so many ``kernels``.
    """
    if not compiling or not kernels:
        return _TOGETHER
    return int(min(_TOGETHER, max(_LEAST_TOGETHER, seconds / 2 * kernels / compiling)))


def _kernels(path: str) -> int:
    return Path(path).read_text(errors="replace").count("@triton.jit")


def _groups(sources: list[str], at_once: int = _TOGETHER) -> list[list[str]]:
    """The names of the variants, in their order, by which are compiled at once: as many as have so many kernels."""
    groups: list[list[str]] = [[]]
    kernels = 0
    for i, path in enumerate(sources):
        if kernels >= at_once:
            groups.append([])
            kernels = 0
        groups[-1].append(str(i))
        kernels += _kernels(path)
    return groups


def load(referee: Referee, sources: list[str], all_needed: bool = False) -> list[schema.Tried]:
    """Wait until every variant is imported and compiled, and give the first the module's state: all share its tensors.

    Those that there was no time to compile are told so; there are none where ``all_needed``.

    Raises:
        Failure: the trial is gone, or the first variant cannot be loaded.
    """
    if not referee.trial.owed:
        begin(referee, sources, all_needed)
    tried = []
    for i in range(len(sources)):
        one = schema.Tried()
        try:
            referee.heard()
        except failures.Failure as failure:
            if _gone(failure) or i == 0:
                raise
            one.reason = failure.reason
        try:
            referee.heard()  # whether it could be kept: what was not imported is not asked for again
        except failures.Failure as failure:
            if _gone(failure):
                raise
            one.reason = one.reason or failure.reason
        tried.append(one)
    compiled = referee.heard().get("compiled", 0)  # a trial may leave out what it is asked for
    for one in tried[max(1, compiled) :]:
        one.reason = one.reason or "it was not compiled, since the time for that was over"
    referee.settle()
    referee.ask({"do": "choose", "name": "0"})
    candidate_state.send_state(referee)
    return tried


def check(referee: Referee, tried: list[schema.Tried]) -> dict[str, int]:
    """Drop the variants that fail, that spill, or that compute something else than the module.

    Returns the number of launches and torch calls in a call of each that was called, by its name.

    Raises:
        Failure: the trial is gone. What else a variant fails with is its reason.
    """
    tree = measuring.fresh(referee)
    reference = referee.oracle.answer(tree, seconds=0.1)
    eager_error, slices = referee.eager_error, reference.slices
    if reference.exact is None:  # eager in full; float64 is for the winner's own validation
        reference.slices = None
        reference.said = ""
    request = {"do": "call", "names": list(referee.inputs.names), "seed": referee.oracle.seed}
    lower = referee.held_to != "strict"
    calls: dict[str, int] = {}
    with _progress_of_its_own(referee):
        for i, one in enumerate(tried):
            if one.reason:
                continue
            try:
                referee.ask({"do": "choose", "name": str(i)})
                with referee.asking(request, (*tree, None), reference.eager, tuple(referee.inputs.names)) as answer:
                    calls[str(i)] = answer_checks.calls_in(answer.message)
                    out = tied_indices.settled(referee, answer.tree, reference, tree, False)
                    asked = tree if lower else None
                    one.reason = agreement.compared(referee, out, reference, eager_error, asked).reason
                    if one.reason and slices is not None:
                        eager_error, slices = max(eager_error, _error_of_eager(referee, reference, slices)), None
                        one.reason = agreement.compared(referee, out, reference, eager_error, asked).reason
                kernels = referee.ask({"do": "kernels"})["kernels"]
                one.spills = max((k["spills"] or 0 for k in kernels), default=0)
                if one.spills > MOST_SPILLED and any(not other.reason for other in tried[:i]):
                    one.reason = f"it spills {one.spills} bytes a thread"
            except failures.Failure as failure:
                if _gone(failure):
                    raise
                one.reason = failure.reason
    return calls


def _error_of_eager(referee: Referee, reference: Reference, slices: Callable[[Reference], Iterator[Part]]) -> float:
    """Eager's error at ``reference``, on the slices that float64 is computed for; 0 where there is no memory for that.

    What is known of it from checks may be of other weights, behind a scale of nearly nothing, or of sizes at which torch takes other products.
    """
    eager = agreement.plainly(reference.eager)
    reference.slices = slices
    try:
        return agreement.compared(referee, eager, reference).eager_error
    except torch.OutOfMemoryError:
        memory.release()
        return 0.0
    finally:
        reference.slices, reference.said = None, ""


@contextlib.contextmanager
def _progress_of_its_own(referee: Referee) -> Iterator[None]:
    """What is found out in the context is no part of the verdict; whose checks are still to be made is kept."""
    kept, referee.progress = referee.progress, Progress()
    try:
        yield
    finally:
        referee.progress = kept


def _time(
    referee: Referee,
    tried: list[schema.Tried],
    names: list[str],
    calls_of: dict[str, int],
    specimen: dict[str, Any],
    rates: dict[str, float],
) -> tuple[schema.Measurement, dict[str, float]]:
    """``calls_of``: as ``check`` returns it. Another variant may have many more than the first, which was validated."""
    measurement, shape = measuring.begin(referee, specimen, rates)
    recorded.begin(referee, measurement)
    with _progress_of_its_own(referee):
        names, elsewhere, calls = race(referee, tried, names)
    if not names:
        measurement.missing = "no schedule is right at the recorded shapes"
        return measurement, rates
    weight = (shape.calls or 0) if calls else 1
    for name in names if referee.oracle.moving() else []:  # each was called when it was checked
        referee.ask({"do": "choose", "name": name})
        candidate_state.rewind(referee)
    tree = measuring.fresh(referee)
    reference = measuring.right_answer(referee, tree)
    request = {"do": "time_variants", "names": names, "worth": WORTH, "beyond": referee.beyond}
    request |= {"elsewhere": elsewhere, "weight": weight}
    with referee.asking(request, (*tree, None), referee.outputs) as answer:
        found = answer.message
        problem = measuring.difference(referee, tree, reference, answer.tree)
    del tree, reference  # what comes next makes its own
    for name in names:
        one = tried[int(name)]
        one.timing = schema.from_json(schema.Timing, found["timings"][name])
        if calls and one.timing is not None:
            one.mixed = (elsewhere[name] + weight * one.timing.median) / (calls + weight)
    fastest = tried[int(found["fastest"])]
    if problem:
        fastest.reason = f"{measuring.MEANWHILE}: {problem}"
        if found["fastest"] != "0":  # not the validated one: another schedule may be right and fast
            others = [name for name in names if name != found["fastest"]]
            return _time(referee, tried, others, calls_of, specimen, rates)
        measurement.missing = measuring.OTHERWISE
        return measurement, rates
    fastest.fastest = True
    times = {"eager": found["timings"]["eager"], "kernel": found["timings"][found["fastest"]]}
    given = measuring.of_the_example(referee)
    given.calls = max(given.calls, calls_of[found["fastest"]])
    if failure := measuring.fill(measurement, shape, times | found["graphs"], referee, given):
        fastest.reason, fastest.fastest = failure.reason, False
    elif shape.kernel is not None and referee.recorded is not None:
        referee.ask({"do": "choose", "name": found["fastest"]})
        status, problem = recorded.measure(referee, measurement)
        if problem:
            fastest.reason, fastest.fastest = problem, False
            fastest.timing = None if status == "wrong" else fastest.timing
            measurement = of_another(measurement, tried, 0)
    measurement.compiled_missing = "not asked for"
    return measurement, rates


def race(referee: Referee, tried: list[schema.Tried], names: list[str]) -> tuple[list[str], dict[str, float], int]:
    """Time the variants ``names`` beside eager at the recorded shapes.

    Gives those that are right there, the microseconds that each took in as many calls as were recorded, and how many these are. A
    variant that is wrong at one is told so in ``tried``.

    Raises:
        Failure: where the trial is lost.
    """
    taken, calls = dict.fromkeys(names, 0.0), 0
    for shape in recorded.in_time(referee, []):
        with recorded.leaving_out(shape, []):
            medians = _race_at(referee, tried, names, shape)
            calls += shape.calls
            for name in medians:
                taken[name] += shape.calls * medians[name]
        names = [name for name in names if not tried[int(name)].reason]
        if not names:
            break
    return names, taken, calls


def _race_at(
    referee: Referee, tried: list[schema.Tried], names: list[str], shape: recorded.RecordedShape
) -> dict[str, float]:
    """The medians of the variants that are right at one recorded shape.

    Raises:
        LeftOut, Failure: as ``race`` says.
    """
    tree, reference = recorded.answered(referee, shape)
    for name in names:
        try:
            referee.ask({"do": "choose", "name": name})
            recorded.check(referee, shape, tree, reference)
        except failures.Failure as failure:
            if (failure.status == "timeout" or _gone(failure)) and name != names[0]:
                raise failures.Failure(failure.status, f"another schedule, {failure.reason}") from None
            if failure.status == "timeout":
                raise
            tried[int(name)].reason = failure.reason
            if _gone(failure):  # the one that was validated, and with it the trial that holds the others
                for other in names[1:]:
                    tried[int(other)].reason = f"not timed: {failure.reason}"
                return {}
    right = [name for name in names if not tried[int(name)].reason]
    if not right:
        return {}
    candidate_state.rewind(referee)
    request = {"do": "time_variants", "names": right, "worth": WORTH, "beyond": referee.beyond, "replays": False}
    with referee.asking(request, (*tree, None), without_memory(reference.eager)) as answer:
        times = answer.message["timings"]
    if any(name not in times for name in right):
        raise failures.Failure("cheating", "it sent times that are not whole")
    return {name: times[name]["median"] for name in right}


def by_time(tried: list[schema.Tried]) -> list[int]:
    """The variants that are right so far, fastest first, from the one marked ``fastest`` on; [] where none is."""
    fastest = next((i for i, one in enumerate(tried) if one.fastest), None)
    if fastest is None:
        return []

    def taken(i: int) -> float:
        one = tried[i]
        assert one.timing is not None
        return one.mixed if one.mixed is not None else one.timing.median

    rest = [i for i, one in enumerate(tried) if one.timing and not one.reason and i != fastest]
    return [fastest, *sorted(rest, key=taken)]


def of_another(measurement: schema.Measurement, tried: list[schema.Tried], index: int) -> schema.Measurement:
    """The measurement of variant ``index``, from that of the fastest, which was timed beside it."""
    one = tried[index]
    if one.timing is None or not measurement.shapes:
        return schema.Measurement(missing="the fastest variant is wrong, and this one was not timed")
    first = copy.deepcopy(measurement)
    shape, first.shapes = first.shapes[0], first.shapes[:1]
    if first.recorded is not None:
        shape.calls = None
        first.recorded.left_out = ["all shapes: their times are of another schedule, which a later check found wrong"]
        first.recorded.share = None
    shape.kernel, shape.kernel_graph = one.timing, None
    if shape.roofline:
        shape.roofline_share = shape.roofline / shape.kernel.median
    if shape.bytes and first.device and first.device.copy_bandwidth:
        shape.bandwidth_share = shape.bytes / (shape.kernel.median * 1e-6) / first.device.copy_bandwidth
    return first


def _gone(failure: failures.Failure) -> bool:
    """Whether the trial itself is lost, and every variant in it."""
    return failure.status == "timeout" or "its process" in failure.reason or "CUDA error" in failure.reason
