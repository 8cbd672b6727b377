"""The worker's method ``slice``: a class for a language model's prompt, and the envelope of what the model answers."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from kernel_lsp import class_schema, errors, schema
from kernel_lsp.envelope.errors import Unwritable
from kernel_lsp.envelope.signature import Signature
from kernel_lsp.slicing.building import Slice, Subject, Unsliceable, build
from kernel_lsp.slicing.collect import How
from kernel_lsp.slicing.conditions import conditions
from kernel_lsp.slicing.naming import Captured
from kernel_lsp.slicing.verify import Nursery, all_described, described
from kernel_lsp.specimen import examples, looking, modules
from kernel_lsp.validation import channel

#: from the least to the most that is taken over as it stands
ATTEMPTS = (
    How(),
    How(rename=False),
    How(by_value=True),
    How(by_value=True, rename=False),
    How(whole=True),
    How(whole=True, rename=False),
)
#: bytes and FLOPs up to which the slice's outputs are compared in numbers, too
_CHEAP_BYTES, _CHEAP_FLOPS = 32 << 20, 2e9


def slice_class(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """The specimen and the ``class_schema.Subject`` as JSON.

    Raises:
        NotSliceable: no slice turns out to be the class.
        NotWritable: a condition of its envelope has no text.
        UserError: what introspect raises.
    """
    nursery = Nursery([given["answers"]] if "answers" in given else [], given.get("scratch"))
    try:
        seen = looking.look(given, emit)
        emit("progress", {"stage": "slice", "message": f"slicing {given['class_name']}", "fraction": 0.6})
        source = sliced(nursery, seen, given["path"], given["class_name"])
    finally:
        nursery.close()
    return {"specimen": schema.to_json(seen.specimen), "subject": schema.to_json(_subject(seen, given, source))}


def sliced(nursery: Nursery, seen: looking.Seen, path: str, class_name: str) -> str:
    """The first slice that turns out to be the class.

    Raises:
        NotSliceable: none does; with what was wrong with the first one.
    """
    root, _ = modules.dotted_name(path)
    subject = Subject(path, root, class_name, seen.user_module, seen.cls, seen.example)
    problem = ""
    tried: set[str] = set()
    # The last may import from the workspace: better a prompt that leaves something out than none.
    for how, alone in [*((how, True) for how in ATTEMPTS), (ATTEMPTS[0], False)]:
        try:
            written = build(subject, how)
        except (Unsliceable, Captured) as error:
            problem = problem or (str(error) if isinstance(error, Unsliceable) else f"the name {error} is taken")
            continue
        if alone and written.source in tried:
            continue
        tried.add(written.source)
        wrong = _difference(nursery, written, seen, root if written.modules or not alone else None)
        if wrong is None:
            return written.source
        print(f"slice of {class_name} with {how}: {wrong}\n{written.source}", file=sys.stderr)
        problem = problem or wrong
        if nursery.stuck:
            break
    raise errors.NotSliceable(path=path, line=_line(seen, path), class_name=class_name, detail=problem.rstrip("."))


def _difference(nursery: Nursery, written: Slice, seen: looking.Seen, root: str | None) -> str | None:
    """What distinguishes the slice's ``Model`` from the module; None where nothing was seen to.

    ``root``: the folder that imports of the workspace are found in, None for a slice that has to do without.
    """
    example, module = seen.example, seen.module
    state = module.state_dict()
    size = seen.specimen.bytes or 0
    cheap = size <= _CHEAP_BYTES and (seen.specimen.flops or 0) <= _CHEAP_FLOPS
    call = (example.args, example.kwargs) if cheap else None
    is_ = nursery.run(written.source, root=root, state=state, call=call)
    if "error" in is_:
        where = f" at line {is_['line']} of the slice" if is_["line"] else ""
        return f"on its own it raises {is_['error']}{where}"
    if is_["state"] != [[name, *described(tensor)] for name, tensor in state.items()]:
        return "on its own its state_dict is another one"
    if sorted(is_["inputs"], key=str) != sorted(all_described((example.args, example.kwargs)), key=str):
        return "its example inputs could not be written down"
    expected = [[spec.shape, spec.dtype] for spec in seen.specimen.outputs]
    if is_["outputs"] is None and not is_["file"] and seen.specimen.flops is not None:
        return "on its own its forward does not run"
    if is_["outputs"] is not None and is_["outputs"] != expected:
        return "on its own it returns tensors of other shapes or dtypes"
    if is_["file"] and not _same_numbers(module, example, torch.load(is_["file"])):
        return "on its own it computes something else"
    return None


def _same_numbers(module: torch.nn.Module, example: examples.Example, outputs: list[torch.Tensor]) -> bool:
    """Whether ``outputs`` are the module's, but for rounding; or the module's differ between two calls."""

    def run() -> list[torch.Tensor]:
        examples.seed_all(1)
        with torch.no_grad():
            result = module(*example.args, **example.kwargs)
        return [t for t in pytree.tree_leaves(channel.plain(result)) if isinstance(t, torch.Tensor)]

    def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
        return len(a) == len(b) and all(map(_close, a, b))

    expected = run()
    return same(expected, outputs) or not same(expected, run())


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    wide = torch.complex128 if a.is_complex() else torch.float64
    half = torch.finfo(a.dtype).eps ** 0.5 if a.is_floating_point() or a.is_complex() else 0.0
    a, b = a.to(wide), b.to(wide)
    scale = b.abs().nan_to_num(0.0, 0.0, 0.0).max().item() if b.numel() else 0.0
    return torch.allclose(a, b, rtol=half, atol=half * max(scale, 1e-30), equal_nan=True)


def _line(seen: looking.Seen, path: str) -> int | None:
    """Where the class is in the user's file."""
    try:
        if inspect.getsourcefile(seen.cls) == path:
            return inspect.getsourcelines(seen.cls)[1]
    except (OSError, TypeError):
        pass
    return 1


def _subject(seen: looking.Seen, given: dict[str, Any], source: str) -> class_schema.Subject:
    module, example = seen.module, seen.example
    exported = seen.exported if isinstance(seen.exported, ExportedProgram) else None
    if exported is not None:
        args, kwargs = exported.example_inputs
    else:
        args, kwargs = example.args, example.kwargs
    try:
        signature = Signature(module, args, kwargs)
        free, exact = conditions(module, signature, exported)
    except Unwritable as error:
        raise errors.NotWritable(class_name=given["class_name"], detail=error.detail) from error
    return class_schema.Subject(
        source=source,
        import_from=seen.specimen.module,
        import_file=seen.specimen.file,
        base=given["class_name"],
        parameters=signature.parameters,
        names=signature.names,
        tensors=[text for text, _ in signature.tensors],
        attributes=sorted(name for name in dir(module) if _readable(module, name)),
        state=list(module.state_dict()),
        conditions=free,
        exact=exact,
    )


def _readable(module: torch.nn.Module, name: str) -> bool:
    try:
        getattr(module, name)
    except Exception:  # a property may raise anything
        return False
    return name.isidentifier()
