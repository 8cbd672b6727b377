"""The child that validates: forks the trials before anything touches CUDA, then holds the referee."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import class_schema, errors, loading, naming, schema, speedup, why_eager
from kernel_lsp.naming import kernel_class
from kernel_lsp.specimen import modules, specs
from kernel_lsp.validation import channel, failures, measuring, memory, progress, recorded, screening, sizes
from kernel_lsp.validation.calls_outside import UnmarkedProcess
from kernel_lsp.validation.inputs import Inputs, from_example
from kernel_lsp.validation.referee import Referee
from kernel_lsp.validation.trial_connection import TrialConnection
from kernel_lsp.worker import gpu_lock, memory_quota, preparing, recorded_shapes, trials

#: seconds after which checks that are not essential are left out
SOFT_SECONDS = {"interpreter": 1.5, "gpu": 0.8}


def warm_up() -> None:
    """Have imported what the first poisoned call would import (most of torch._dynamo: seconds)."""
    import torch._dynamo

    from kernel_lsp.validation.guards import Guards, Poisoned

    with torch.no_grad(), Poisoned(Guards()):
        torch.empty_like(torch.zeros(4)).zero_().clone()


def validate(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """``{"verdict", "measurement", "rates"}`` for a candidate.

    Raises:
        UserError: importing or building fails.
    """
    kernel_class = kernel_class_of(given)
    if rejected := rejected_by_its_text(given, given["source"]):
        emit("verdict", schema.to_json(rejected))
        return {"verdict": schema.to_json(rejected), "measurement": None}
    source = written(given["source"], trials.sources_of(given), kernel_class)
    trial = trials.fork(given, os.path.join(given["scratch"], "trial"), source)
    try:
        referee = referee_of(given, trial, emit)
        verdict = _first_verdict(referee)
        emit("verdict", schema.to_json(verdict))
        measurement, rates = _measurement(given, referee, verdict, emit)
        verdict = _finished(referee, verdict)
        measured = None if measurement is None else schema.to_json(measurement)
        return {"verdict": schema.to_json(verdict), "measurement": measured, "rates": rates}
    except torch.OutOfMemoryError as error:
        raise _out_of_memory(given, error) from None
    finally:
        trial.kill()


#: schedules that are validated in full, beside the first
_MOST_VALIDATED = 2
#: What of the time that is left after the first verdict is kept for the checks that it put off: so many times as long as that verdict took,
#: and this share of it at the most. They took 1.1 to 3.8 times as long for blocks of timm and transformers, eight at once on 16 cores.
_TIMES_THE_FIRST, _MOST_KEPT = 3.0, 0.4


def tune(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """Validate the first of ``sources``, time all of them, and validate the fastest, or the next one where that is wrong.

    Gives ``{"verdicts": {index: Verdict}, "measurement", "tried": [Tried], "fastest": index, "rates"}``. The verdict on the first is
    emitted before the others are looked at. Where it is not correct, or the others could not be timed, ``tried`` is empty.

    Raises:
        UserError: importing or building fails.
        GpuOutOfMemory: the GPU has too little memory for the inputs.
    """
    from kernel_lsp.validation import tuning

    kernel_class = kernel_class_of(given)
    if rejected := rejected_by_its_text(given, given["sources"][0]):
        emit("verdict", {"index": 0, "verdict": schema.to_json(rejected)})
        return {"verdicts": {0: schema.to_json(rejected)}, "tried": [], "fastest": 0, "measurement": None}
    folder = os.path.join(given["scratch"], "trial")
    sources = [
        written(text, os.path.join(trials.sources_of(given), f"variant_{i}"), kernel_class)
        for i, text in enumerate(given["sources"])
    ]
    # All of them before this process touches CUDA, which forbids a fork; the last one waits with that, too.
    first = trials.fork(given, folder, sources[0])
    early = len(sources) > 1 and tuning.processors_to_spare()
    # What begins before the first verdict has a folder of its own: there Triton keeps what is compiled.
    all_at_once = trials.fork(given, f"{folder}_of_variants" if early else folder, sources[0], [first])
    connections = [first, all_at_once]
    for _ in sources[1 : 1 + _MOST_VALIDATED]:
        connections.append(trials.fork(given, folder, sources[0], connections, waits=True))
    try:
        began = time.monotonic()
        referee = referee_of(given, first, emit, connections)
        referee.spent["import, inputs, construct"] = round(time.monotonic() - began - referee.waited, 3)
        if early:
            referee.meanwhile = functools.partial(tuning.begin_early, referee, all_at_once, sources)
        with referee.spending("first verdict"):
            verdict = _first_verdict(referee)
        emit("verdict", {"index": 0, "verdict": schema.to_json(verdict)})
        answer: dict[str, Any] = {"tried": [], "fastest": 0, "measurement": None, "rates": given.get("rates")}
        answer["verdicts"] = {0: schema.to_json(verdict)}
        if verdict.status not in schema.CORRECT:
            return answer
        _keep_time_for_what_was_put_off(referee, connections[1:])
        referee.compile_ahead()
        tried: list[schema.Tried] = []
        try:
            measurement, answer["rates"], tried = tuning.tune(
                referee, all_at_once, sources, given["specimen"], given.get("rates"), emit
            )
        except (failures.Failure, torch.OutOfMemoryError) as error:
            said = (
                error.reason if isinstance(error, failures.Failure) else f"out of memory: {str(error).splitlines()[0]}"
            )
            measurement = schema.Measurement(missing=said)
            if isinstance(error, failures.Failure) and error.status == "timeout" and said.startswith(recorded.AT_SHAPE):
                verdict.status, verdict.reason = "timeout", said
                answer["verdicts"][0] = schema.to_json(verdict)
                return answer | {"measurement": schema.to_json(measurement), "spent": referee.spent}
            if all_at_once.stopped or getattr(error, "status", "") == "crashed":
                all_at_once.kill()
                why = said if said.startswith(tuning.NONE_FIT) else f"their process ended ({said})"
                why = "the time for that was over" if all_at_once.stopped else why
                return answer | _of_the_first_alone(given, referee, verdict, why, emit)
        finally:
            all_at_once.kill()
        measurement.beside = referee.other_work
        of_the_first, fastest = referee.progress, 0
        order = tuning.by_time(tried)
        for trial, i in zip(connections[2:], order, strict=False):
            if i == 0:
                break
            trial.source = sources[i]
            with referee.spending("the fastest variant's own validation"):
                other = referee.of_another(trial)
            answer["verdicts"][i] = schema.to_json(other)
            if other.status in schema.CORRECT:
                _say_why_not(verdict, "another schedule is faster")
                if tried[0].reason and not tried[0].timing:  # at a recorded shape
                    verdict.status, verdict.reason = "wrong", tried[0].reason
                answer["verdicts"][0] = schema.to_json(verdict)
                fastest, verdict = i, _with_kernels(referee, other)
                answer["verdicts"][fastest] = schema.to_json(verdict)
                break
            # Wrong where the example's sizes do not show it: the next one in time.
            tried[i].reason, tried[i].fastest = other.reason, False
        if order and fastest != order[0]:
            tried[fastest].fastest = True
            measurement = tuning.of_another(measurement, tried, fastest)
        if not fastest:
            referee.trial, referee.progress = first, of_the_first
            with referee.spending("the checks that were put off"):
                verdict = _finished(referee, verdict)
            answer["verdicts"][0] = schema.to_json(verdict)
        if tried and tried[0].reason and not fastest:  # on values that it had not seen, or while it was timed
            verdict.status, verdict.reason = "cheating" if tried[0].timing else "wrong", tried[0].reason
            answer["verdicts"][0] = schema.to_json(verdict)
        elif measurement.shapes:
            speedup.note_if_slower_than_eager(verdict, measurement)
            answer["verdicts"][fastest] = schema.to_json(verdict)
        answer |= {"tried": [schema.to_json(t) for t in tried], "fastest": fastest}
        answer["measurement"] = schema.to_json(measurement)
        answer["spent"] = referee.spent
        return answer
    except torch.OutOfMemoryError as error:
        raise _out_of_memory(given, error) from None
    finally:
        for trial in connections:
            trial.kill()


def _keep_time_for_what_was_put_off(referee: Referee, others: Sequence[TrialConnection]) -> None:
    """Have the trials of other schedules end early enough for the checks that are left of the first, which is correct so far."""
    if referee.progress.deferred and referee.recorded is None:  # calls at recorded shapes may take what there is
        left = max(0.0, referee.trial.deadline - time.monotonic())
        for one in others:
            one.deadline -= min(_MOST_KEPT * left, _TIMES_THE_FIRST * referee.spent["first verdict"])


def _of_the_first_alone(
    given: dict[str, Any], referee: Referee, verdict: schema.Verdict, why: str, emit: Any
) -> dict[str, Any]:
    """What ``tune`` gives where the trial of the other schedules is of no use, and ``why``: the first is checked to the end, and timed then."""
    referee.of_timing.append(f"other schedules were not timed, since {why}")
    with contextlib.suppress(failures.Failure):  # it is met again where it counts
        referee.settle()
    with referee.spending("the checks that were put off"):
        verdict = _finished(referee, verdict)
    measurement, rates = _measurement(given, referee, verdict, emit)
    return {
        "verdicts": {0: schema.to_json(_with_limits_of_timing(referee, verdict))},
        "measurement": schema.to_json(measurement or schema.Measurement(missing=why)),
        "rates": rates or given.get("rates"),
        "spent": referee.spent,
    }


def kernel_class_of(given: dict[str, Any]) -> str:
    """The name of the class in a kernel file, of the module's class without those around it."""
    return kernel_class(str(given["class_name"]))


def rejected_by_its_text(given: dict[str, Any], source: str) -> schema.Verdict | None:
    """The verdict on a candidate that is not to be run, for what its text shows; None where it may be."""
    own = modules.loading_name(given["path"])
    rejected = screening.screen(loading.without(why_eager.screened(source), own), kernel_class_of(given))
    if rejected is not None and why_eager.is_changed(source):
        rejected = "the functions at its end, which tell why a call runs eager, were changed; generate it again", None
    return None if rejected is None else schema.Verdict("rejected", *rejected)


def _first_verdict(referee: Referee) -> schema.Verdict:
    verdict = referee.verdict()
    return _with_kernels(referee, verdict) if verdict.status in schema.CORRECT else verdict


def _with_kernels(referee: Referee, verdict: schema.Verdict) -> schema.Verdict:
    if referee.mode == "gpu":
        with contextlib.suppress(failures.Failure):  # the verdict stands without them
            kernels = referee.ask({"do": "kernels"})["kernels"]
            verdict.kernels = [schema.from_json(schema.CompiledKernel, k) for k in kernels]
    return verdict


def _finished(referee: Referee, verdict: schema.Verdict) -> schema.Verdict:
    """The verdict with the checks that were put off until the times were known, and what timing could not tell."""
    if not referee.progress.deferred or verdict.status not in schema.CORRECT:
        return _with_limits_of_timing(referee, verdict)
    if referee.trial.stopped or time.monotonic() > referee.trial.deadline:
        _say_why_not(verdict, "the time was over")
        if needed := [s.name for s in referee.progress.deferred if s.needed]:
            verdict.status, verdict.reason = "timeout", progress.time_over_between(referee.progress, needed)
        return _with_limits_of_timing(referee, verdict)
    last = referee.finish()
    last.kernels = verdict.kernels
    if last.status == "ok":  # the speed has been validated already
        last.status, last.reason = verdict.status, verdict.reason
    return last


def _with_limits_of_timing(referee: Referee, verdict: schema.Verdict) -> schema.Verdict:
    """A verdict that was composed before the timing, as a thorough one is."""
    verdict.limits += [limit for limit in dict.fromkeys(referee.of_timing) if limit not in verdict.limits]
    return verdict


def _say_why_not(verdict: schema.Verdict, why: str) -> None:
    """What was put off for a candidate and will not be made up for."""
    for i, limit in enumerate(verdict.limits):
        if limit.startswith(schema.STILL):
            verdict.limits[i] = f"not checked, since {why}: {limit.removeprefix(schema.STILL)}"


def _out_of_memory(given: dict[str, Any], error: Exception) -> errors.UserError:
    where = torch.device(given["device"])
    inputs = [schema.from_json(class_schema.TensorSpec, s) for s in given["specimen"]["inputs"]]
    taken = sum(math.prod(s.shape) * getattr(torch, s.dtype).itemsize for s in inputs)
    there = memory.free([torch.empty(0, device=where)])
    return errors.GpuOutOfMemory(
        device=given["device"],
        class_name=given["class_name"],
        needed=f"more than {memory.text(there)} beside {memory.text(taken)} of inputs",
        there=memory.text(there),
        detail=str(error).splitlines()[0],
    )


def referee_of(
    given: dict[str, Any], trial: TrialConnection, emit: Any, connections: Sequence[TrialConnection] = ()
) -> Referee:
    """The module, its example and the plan of checks, on the device, which is shared from now on with others that check.

    It holds as many parts of the device's memory as it needs, where lanes share that.

    ``connections``: all trials that were forked, where that are more than ``trial``. Waiting for the device is not on their time.

    Raises:
        UserError: importing or building fails.
        GpuTaken: others timed on the device for too long.
    """
    mode = "interpreter" if given["device"] == "interpreter" else "gpu"
    where = torch.device("cpu" if mode == "interpreter" else given["device"])
    locks: list[gpu_lock.GpuLock] = []

    def waited(seconds: float) -> None:
        for one in connections or (trial,):
            one.deadline += seconds

    def before_gpu() -> None:
        locks.append(memory_quota.begin(given, where, emit, waited))
        for one in connections or (trial,):
            one.start()

    ready = preparing.prepare(given, before_gpu)
    module, example = ready.module, ready.example
    names = specs.input_names(type(module), example.args, example.kwargs)
    leaves = pytree.tree_leaves((example.args, example.kwargs))
    names = [n for n, leaf in zip(names, leaves, strict=True) if isinstance(leaf, torch.Tensor)]
    args, kwargs = preparing.moved(example, where)
    inputs = from_example(args, kwargs, given["specimen"], where, names)
    unpinned = None
    if given["specimen"].get("pinned") and not ready.hollow:
        free = {**given["specimen"], "inputs": given["specimen"].get("unpinned") or [], "pinned": False}
        unpinned = from_example(args, kwargs, free, where, names)
    if ready.hollow:
        inputs.fill(sizes.small(inputs))
    else:
        inputs.again = ready.again
    _about_forward(inputs, module)
    training = bool(given.get("training"))
    independent = given["specimen"].get("independent") or []
    referee = Referee(module, inputs, trial, mode, emit, SOFT_SECONDS[mode], independent, training)
    referee.unpinned = unpinned
    referee.unmarked = _unmarked(given)
    referee.recorded = recorded_shapes.find(given.get("recorded"), module, example, inputs, training)
    referee.thorough = bool(given.get("thorough"))
    results = [schema.from_json(class_schema.TensorSpec, s) for s in given["specimen"].get("outputs") or []]
    referee.result_bytes = sum(math.prod(s.shape) * getattr(torch, s.dtype).itemsize for s in results)
    for lock in locks:
        referee.waited = lock.waited
        lock.told.append(referee.put_off)
        referee.alone = functools.partial(_alone, referee, lock)
        referee.give_way = functools.partial(gpu_lock.give_way, lock)
    referee.check_bounds = given.get("bounds") == "check"
    referee.precision = given.get("precision") or "strict"
    referee.crashed_in = tuple(given.get("crashed_in") or ())
    if ready.hollow:
        referee.progress.limits.append(
            f"the example's own values: inputs of {ready.hollow} were not made on this machine"
        )
    return referee


def _unmarked(given: dict[str, Any]) -> UnmarkedProcess | None:
    """How to have a candidate called in an unmarked process, under the name that its file has in use."""
    if not given.get("sockets"):
        return None
    path, class_name = os.path.abspath(given["path"]), str(given["class_name"])
    kernel = given.get("kernel") or os.path.join(
        os.path.dirname(path), "kernels", f"{naming.snake_case(class_name)}_triton.py"
    )
    end = channel.Channel(socket.socket(fileno=given["sockets"][0]))
    return UnmarkedProcess(end, os.path.abspath(kernel), kernel_class_of(given))


@contextlib.contextmanager
def _alone(referee: Referee, lock: gpu_lock.GpuLock) -> Iterator[None]:
    """Have the GPU alone, and note what other programs did there meanwhile: at the end, before others of ours go on."""
    referee.other_work = ""
    with gpu_lock.alone(lock) as said:
        try:
            yield
        finally:
            referee.other_work = said()


def _about_forward(inputs: Inputs, module: torch.nn.Module) -> None:
    """What else forward may be given: its parameters with a default, and targets that its loss does not count."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    inputs.positional = named
    given = {*named[: len(inputs.args)], *inputs.kwargs}
    inputs.defaults = {
        p.name: p.default
        for p in parameters
        if p.name not in given and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.default is not p.empty
    }
    attributes = [getattr(m, "ignore_index", None) for m in module.modules()]
    own = [value for value in attributes if isinstance(value, int)]
    losses = any("nll_loss" in op or "cross_entropy" in op for op in inputs.ops)
    if own or losses:
        inputs.ignored = own[0] if own else -100


def _measurement(
    given: dict[str, Any], referee: Referee, verdict: schema.Verdict, emit: Any
) -> tuple[schema.Measurement | None, dict[str, float] | None]:
    if referee.mode == "interpreter":
        return schema.Measurement(missing=why_no_gpu()), None
    if given.get("measure") == "none" or verdict.status not in schema.CORRECT:
        return None, None
    try:
        measurement, rates = measuring.measure(referee, verdict, given["specimen"], given.get("rates"), emit)
        measurement.beside = referee.other_work
        return measurement, rates
    except torch.OutOfMemoryError as error:  # the verdict stands
        return schema.Measurement(missing=f"out of GPU memory while measuring: {str(error).splitlines()[0]}"), None


def why_no_gpu() -> str:
    """Why a candidate ran under Triton's interpreter, as a clause."""
    if not torch.version.cuda:
        return f"no CUDA GPU here: torch {torch.__version__} is built without CUDA"
    return "no CUDA GPU here, or the interpreter was asked for"


def written(source: str, folder: str, kernel_class: str) -> str:
    """The candidate as a file in ``folder``: Triton reads the source of its functions from there."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{naming.in_ascii(kernel_class)}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    return path
