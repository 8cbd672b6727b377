"""The trial's part of the timing: candidate, eager and torch.compile in one process, on the same inputs."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import schema
from kernel_lsp.validation import channel, failures, timing

if TYPE_CHECKING:
    from kernel_lsp.validation.trial import Trial

#: sets of inputs that the runs rotate through
SETS = 3


def time_eager(trial: Trial, tree: Any) -> tuple[dict[str, Any], Any]:
    """Timings of eager and the kernel, launched and replayed, and the kernel's output on the first set of inputs."""
    args, kwargs, _ = pytree.tree_map(lambda t: channel.moved(t, trial.device), tree)
    torch.cuda.empty_cache()
    trial.launches.stop()
    trial.module.eval()
    trial.timed = {
        "eager": _eager(trial),
        "kernel": trial.module,
        "inputs": timing.rotated(tuple(args), kwargs, SETS),
    }
    with torch.no_grad():
        out = trial.module(*args, **kwargs)
        return _run(trial, {"eager": trial.timed["eager"], "kernel": trial.module}, graphs=True), out


def time_compiled(trial: Trial) -> tuple[dict[str, Any], Any]:
    """All three again, interleaved, torch.compile's first call aside; ``missing`` says why it could not be."""
    inputs = trial.timed["inputs"]
    try:
        compiled = torch.compile(trial.timed["eager"])
        with torch.no_grad():
            compiled(*inputs[0][0], **inputs[0][1])
            torch.cuda.synchronize()
            modules = {"eager": trial.timed["eager"], "compiled": compiled, "kernel": trial.module}
            return _run(trial, modules, graphs=False), None
    except Exception as error:
        traceback.print_exc()
        return {"missing": f"torch.compile: {failures.sentence(error)}"}, None


def _run(trial: Trial, modules: dict[str, Any], graphs: bool) -> dict[str, Any]:
    inputs = trial.timed["inputs"]
    calls = {name: _caller(module) for name, module in modules.items()}
    found = {name: schema.to_json(t) for name, t in timing.interleaved(calls, inputs).items()}
    if graphs:
        captured = {f"{name}_graph": timing.captured(call, inputs[0]) for name, call in calls.items()}
        replays = {name: call for name, call in captured.items() if call is not None}
        if replays:
            found |= {name: schema.to_json(t) for name, t in timing.interleaved(replays, inputs[:1], 2.0).items()}
    found["host"] = timing.on_the_host(calls["kernel"], inputs)
    return found


def _caller(module: Any) -> timing.Call:
    return lambda args, kwargs: module(*args, **kwargs)


def _eager(trial: Trial) -> torch.nn.Module:
    """The user's module with the candidate's weights."""
    module = trial.base(*trial.init[0], **trial.init[1]).to(trial.device).eval()
    module.load_state_dict(trial.module.state_dict())
    return module
