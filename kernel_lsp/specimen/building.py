"""A module from its class and example, and one call of it, with every failure under its own name."""

from __future__ import annotations

import traceback
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import errors
from kernel_lsp.specimen import examples, faults
from kernel_lsp.validation import channel, misfits


def construct(
    cls: type, example: examples.Example, path: str, class_name: str, training: bool = False
) -> torch.nn.Module:
    """``cls(*init)`` in eval (or training) mode, weights from seed 0.

    Raises:
        InitFailed: the constructor raises.
        DeviceMissing: it asks for a device that is not here.
        NotWritable: parameters or buffers get their shapes in the first call.
    """
    examples.seed_all(0)
    _let_scripted_functions_be_copied()
    try:
        module: torch.nn.Module = cls(*example.init_args, **example.init_kwargs).train(training)
    except (Exception, SystemExit) as error:
        raise _failed(error, errors.InitFailed, path, class_name, init_from=example.init_from) from None
    held = [*module.named_parameters(), *module.named_buffers()]
    if lazy := next((name for name, tensor in held if torch.nn.parameter.is_lazy(tensor)), ""):
        owner = module.get_submodule(lazy.rpartition(".")[0])
        detail = f"{lazy} of a {type(owner).__name__} has no shape before the first call; construct it with its sizes"
        raise errors.NotWritable(path=path, line=None, class_name=class_name, detail=detail)
    return module


def _let_scripted_functions_be_copied() -> None:
    """A copy of a module has the functions of ``torch.jit.script`` that its attributes are, as it has Python's own.

    They hold nothing that changes. torch refuses to copy them: it refuses to pickle them, and copy.deepcopy asks for that.
    """
    torch.jit.ScriptFunction.__deepcopy__ = lambda function, memo: function  # type: ignore[attr-defined]


def call(module: torch.nn.Module, args: Any, kwargs: Any, path: str, class_name: str) -> Any:
    """``module(*args, **kwargs)`` under no_grad.

    Raises:
        ForwardFailed: it raises.
        DeviceMissing: it asks for a device that is not here.
        OutputsNotTensors: it returns something else than tensors, numbers, texts and None.
    """
    try:
        args, kwargs = pytree.tree_map(lambda leaf: leaf, (args, kwargs))  # it may change lists that it is given
        with torch.no_grad():
            out = module(*args, **kwargs)
    except (Exception, SystemExit) as error:
        advice = misfits.dtypes(module, (args, kwargs))
        raise _failed(error, errors.ForwardFailed, path, class_name, advice=advice) from None
    check_outputs(out, path, class_name)
    return channel.plain(out)


def _failed(
    error: BaseException, kind: type[errors.UserError], path: str, class_name: str, **values: str
) -> errors.UserError:
    """What the user is told of an error in code of their own, whose traceback goes to the log. ``values``: of the message."""
    traceback.print_exception(error)
    line, detail = faults.line_in(path, error), faults.sentence(error)
    if device := faults.missing_device(error):
        return errors.DeviceMissing(path=path, line=line, class_name=class_name, device=device, detail=detail)
    return kind(path=path, line=line, class_name=class_name, detail=detail, **values)


def check_outputs(out: Any, path: str, class_name: str) -> None:
    """Check that there are tensors in ``out``, and beside them but numbers, texts and None.

    Tuples, lists, dicts, named tuples, dataclasses and what else pytree knows may hold them.

    Raises:
        OutputsNotTensors: there is none, or something else.
    """
    leaves = pytree.tree_leaves(channel.plain(out))
    known = (torch.Tensor, bool, int, float, str, type(None), torch.dtype, torch.device)
    kinds = [type(leaf).__name__ for leaf in leaves if not isinstance(leaf, known)]
    if kinds or not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        kind = "None" if out is None else type(out).__name__
        if kinds and kinds[0] != kind:
            kind = f"{kind} with {kinds[0]} in it"
        elif leaves and not kinds and out is not leaves[0]:
            kind = f"{kind} without a tensor in it"
        raise errors.OutputsNotTensors(path=path, class_name=class_name, kind=kind)
