"""The trial's part of the timing: candidates and eager in one process, on the same inputs."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import schema
from kernel_lsp.validation import channel, failures, memory, state, timing

if TYPE_CHECKING:
    from kernel_lsp.validation.trial import Trial

#: sets of inputs that the runs rotate through
SETS = 3
#: the least and the most rounds of two kernels that are compared, and the seconds for them
ROUNDS, ROUNDS_SECONDS = (15, 100), 2.0
#: calls that the profiler looks at
_PROFILED = 5
#: microseconds of a call beyond which a CUDA graph has no launches to save
_WORTH_CAPTURING = 2000.0


def time_eager(trial: Trial, tree: Any, beyond: float | None) -> tuple[dict[str, Any], Any]:
    """Timings of eager and the kernel, launched and replayed; then the kernel's output on the inputs that were given."""
    trial.timed = {}  # the inputs and the graph of other shapes take memory
    args, kwargs = _prepared(trial, tree)
    inputs = timing.rotated(args, kwargs, SETS)
    trial.timed = {"inputs": inputs}
    eager = _eager(trial)
    calls = {"eager": _caller(eager), "kernel": _caller(trial.module)}
    before, first = state.snapshot(trial.module), _Before(eager)
    with torch.no_grad():
        timings = timing.interleaved(calls, inputs, beyond=beyond)
        found = {name: schema.to_json(t) for name, t in timings.items()}
        if first.stays():
            found |= _replayed(trial, calls, timings["kernel"].median, inputs, beyond)
        return found, _from(before, trial, args, kwargs)


def time_variants(
    trial: Trial,
    tree: Any,
    names: list[str],
    worth: float,
    beyond: float | None,
    elsewhere: dict[str, float] | None = None,
    weight: float = 1.0,
    replays: bool = True,
) -> tuple[dict[str, Any], Any]:
    """Timings of eager ("eager") and of the candidates ``names`` that were kept, and of the fastest one replayed.

    The first counts as the fastest unless another one takes ``worth`` (a share) less. What one takes is its median times
    ``weight`` and the microseconds that it took ``elsewhere``, at other shapes. ``replays``: whether to replay it.

    ``{"timings": {name: Timing}, "fastest": name, "graphs": {"kernel_graph", "eager_graph"}}``. The fastest is then the
    one that is called.
    """
    trial.timed = {}  # the inputs and the graph of other shapes take memory
    args, kwargs = _prepared(trial, tree)
    eager = _eager(trial)
    modules = {"eager": eager} | {name: trial.variants[name] for name in names}
    inputs = timing.rotated(args, kwargs, SETS)
    before, first = state.snapshot(trial.variants[names[0]]), _Before(eager)
    with torch.no_grad():
        calls = {name: _caller(module) for name, module in modules.items()}
        found = timing.interleaved(calls, inputs, beyond=beyond)
        taken = {name: (elsewhere or {}).get(name, 0.0) + weight * found[name].median for name in names}
        fastest = _fastest(names, taken, worth)
        trial.timed = {"inputs": inputs}
        both = {"eager": calls["eager"], "kernel": calls[fastest]}
        graphs = _replayed(trial, both, found[fastest].median, inputs, beyond) if replays and first.stays() else {}
        trial.module = trial.variants[fastest]
        out = _from(before, trial, args, kwargs)
    timings = {name: schema.to_json(t) for name, t in found.items()}
    return {"timings": timings, "fastest": fastest, "graphs": graphs}, out


def time_rounds(trial: Trial, tree: Any, names: list[str]) -> tuple[dict[str, Any], Any]:
    """``{"rounds": {"eager" and each of ``names``: its time in each round}}``; then the first one's output."""
    args, kwargs = _prepared(trial, tree)
    modules = {name: trial.variants[name] for name in names} | {"eager": _eager(trial)}
    calls = {name: _caller(module) for name, module in modules.items()}
    inputs = timing.rotated(args, kwargs, SETS)
    trial.module = trial.variants[names[0]]
    before = state.snapshot(trial.module)
    with torch.no_grad():
        found = timing.rounds(calls, inputs, ROUNDS_SECONDS, *ROUNDS, tight=0.0)
        return {"rounds": found}, _from(before, trial, args, kwargs)


def run(trial: Trial, tree: Any, calls: int) -> tuple[dict[str, Any], Any]:
    """The output of the last of some calls, one after the other; the referee has its eye on the clock.

    The others get values that were timed, so that the memory of an earlier result does not hold this one.
    """
    args, kwargs = _prepared(trial, tree)
    others = trial.timed["inputs"][0]
    with torch.no_grad():
        for _ in range(calls - 1):
            trial.module(*others[0], **others[1])
        state.put_back(trial.module, trial.timed["moving"], only_known=True, anew=True)
        out = channel.plain(trial.module(*args, **kwargs))
        memory.wait([torch.empty(0, device=trial.device)])
    return {}, out


def replay(trial: Trial, tree: Any) -> tuple[dict[str, Any], Any]:
    """The output of the CUDA graph that was timed, on inputs that it has not seen."""
    graph: timing.Captured = trial.timed["graph"]
    given = pytree.tree_leaves(_prepared(trial, tree))
    with torch.no_grad():
        for mine, theirs in zip(pytree.tree_leaves(graph.inputs), given, strict=True):
            if isinstance(mine, torch.Tensor):
                mine.copy_(theirs)
        state.put_back(trial.module, trial.timed["moving"], only_known=True, anew=True)
        graph.replay()
        torch.cuda.synchronize()
    return {}, channel.plain(graph.out)


def profiled(trial: Trial, tree: Any) -> dict[str, Any]:
    """``{"calls": [[[kernel, microsecond of its begin, microseconds that it took], …], …], "missing": why there are none}``."""
    args, kwargs = _prepared(trial, tree)
    try:
        from torch.profiler import ProfilerActivity, profile

        with torch.no_grad(), profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            for _ in range(_PROFILED):
                torch.cuda._sleep(0)  # which the calls are told apart by
                trial.module(*args, **kwargs)
            torch.cuda.synchronize()
        found = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    except Exception as error:  # CUPTI may be missing, taken by another profiler, or forbidden
        traceback.print_exc()
        return {"calls": [], "missing": failures.sentence(error)}
    calls: list[list[Any]] = []
    began = min((e.time_range.start for e in found), default=0.0)
    for event in sorted(found, key=lambda e: e.time_range.start):
        if timing.SPIN in event.name:
            calls.append([])
        elif calls:
            calls[-1].append([event.name, event.time_range.start - began, event.time_range.elapsed_us()])
    return {"calls": calls, "missing": ""}


def _from(before: dict[str, Any], trial: Trial, args: Any, kwargs: Any) -> Any:
    """What the module gives from the state ``before``; what calls change of it is put back before each that counts."""
    moved = state.changed(trial.module, before)
    trial.timed["moving"] = {path: before[path] for path in moved if path in before}
    state.put_back(trial.module, trial.timed["moving"], only_known=True, anew=True)
    return channel.plain(trial.module(*args, **kwargs))


class _Before:
    """Eager's module before calls.

    A CUDA graph has only the first state of what calls do not change in place. Asked of eager alone: a kernel that changes more
    than the module does is replayed on new inputs all the same.
    """

    def __init__(self, eager: torch.nn.Module) -> None:
        self.eager, self.state, self.places = eager, state.snapshot(eager), _places(eager)

    def stays(self) -> bool:
        """Whether calls have changed nothing of it but buffers in place."""
        now = _places(self.eager)
        return all(path in now and now[path] == self.places.get(path) for path in state.changed(self.eager, self.state))


def _places(module: torch.nn.Module) -> dict[str, int]:
    return {name: buffer.data_ptr() for name, buffer in module.named_buffers()}


def _fastest(names: list[str], taken: dict[str, float], worth: float) -> str:
    best = min(names, key=lambda name: taken[name])
    return best if taken[best] < (1 - worth) * taken[names[0]] else names[0]


def _prepared(trial: Trial, tree: Any) -> tuple[Any, Any]:
    args, kwargs, _ = pytree.tree_map(lambda t: channel.moved(t, trial.device), tree)
    memory.release()
    trial.module.train(trial.training)
    return tuple(args), kwargs


def _replayed(
    trial: Trial, calls: dict[str, timing.Call], median: float, inputs: list[Any], beyond: float | None
) -> dict[str, Any]:
    """Timings of the calls replayed from CUDA graphs, as ``<name>_graph``; nothing where a call has no launches to save.

    The kernel's graph is kept, to be replayed on other inputs.
    """
    if median > _WORTH_CAPTURING:
        return {}
    graphs = {name: timing.captured(call, inputs[0]) for name, call in calls.items()}
    replays = {f"{name}_graph": _replaying(graph) for name, graph in graphs.items() if graph is not None}
    if not replays:
        return {}
    trial.timed["graph"] = graphs["kernel"]
    return {name: schema.to_json(t) for name, t in timing.interleaved(replays, inputs[:1], 0.5, beyond=beyond).items()}


def _replaying(graph: timing.Captured) -> timing.Call:
    return lambda *_: graph.replay()


def _caller(module: Any) -> timing.Call:
    return lambda args, kwargs: module(*args, **kwargs)


def _eager(trial: Trial) -> torch.nn.Module:
    """The user's module with the candidate's weights, which are the same tensors."""
    with torch.device(trial.device):
        module = trial.base(*trial.init[0], **trial.init[1]).to(trial.device).train(trial.training)
    module.load_state_dict(trial.module.state_dict(), assign=True)
    return module
