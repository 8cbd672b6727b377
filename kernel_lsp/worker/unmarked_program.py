"""Builds a model from a file, gives it its weights, and calls it."""

# The main program of an unmarked process (unmarked_process.py), which runs this text under the name main.py. A candidate may find it
# on its stack and in ``__main__``, so it says, imports and does nothing that a user's own program could not.

import contextlib
import copy
import importlib.machinery
import importlib.util
import linecache
import random
import sys
import time
from typing import Any

import numpy
import torch

options: dict[str, Any] = globals().pop("options", {})
results: list[Any] = []
error: BaseException | None = None


def build() -> torch.nn.Module:
    """The model that ``options`` describe, on its device, with its weights."""
    name, path, text = options["name"], options["path"], options["text"]
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    loader = importlib.machinery.SourceFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(text, path, "exec"), vars(module))
    kind = getattr(module, options["class"])
    args, kwargs = options["arguments"]
    device = options["device"]
    with contextlib.nullcontext() if device == "cpu" else torch.device(device):
        model: torch.nn.Module = kind(*args, **kwargs)
    model.to(device, options["dtype"]).train(options["training"])
    model.load_state_dict(options["state"])
    return model


def restore(model: torch.nn.Module) -> None:
    """Set what a call may have changed to what it was."""
    owners = dict(model.named_modules())
    for place, value in options["restored"].items():
        owner, name = owners.get(place.rpartition(".")[0]), place.rpartition(".")[2]
        there = owner._buffers.get(name) if owner is not None else None
        if isinstance(there, torch.Tensor) and isinstance(value, torch.Tensor) and there.shape == value.shape:
            there.copy_(value)
        elif owner is not None and name in owner._buffers:
            owner._buffers[name] = copy.deepcopy(value)
        elif owner is not None:
            setattr(owner, name, copy.deepcopy(value))


def main() -> None:
    """Call the model with each of the inputs, and keep what comes out."""
    model = build()
    until = time.monotonic() + options["seconds"]
    with torch.no_grad():
        for inputs in options["inputs"]:
            if results and time.monotonic() > until:
                break
            args, kwargs = copy.deepcopy(inputs)
            restore(model)
            if options["seed"] is not None:
                torch.manual_seed(options["seed"])
                random.seed(options["seed"])
                numpy.random.seed(options["seed"])
            output = model(*args, **kwargs)
            results.append(copy.deepcopy([output, list(args), kwargs]))


if __name__ == "__main__":
    try:
        main()
    except BaseException as problem:
        error = problem
