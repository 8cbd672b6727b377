"""Runs a slice and the module it was cut from: ``{"path", "class_name", "source"}`` in, one JSON object a line out.

The slice runs in a child that never imported the module; its folder is not on ``sys.path`` there.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.specimen import building, examples, faking, importing
from kernel_lsp.validation import channel

torch.set_num_threads(1)


def shapes(tree: Any) -> list[Any]:
    return [(t.shape, t.dtype) if isinstance(t, torch.Tensor) else type(t) for t in pytree.tree_leaves(tree)]


def cut(call: Any, dynamic: list[list[int]] | None) -> Any:
    """``call`` with at most 16 elements along the dimensions that are ``dynamic``."""
    rest = iter(dynamic or [])

    def one(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and dynamic is not None:
            dims = next(rest)
            short = leaf[tuple(slice(16) if i in dims else slice(None) for i in range(leaf.dim()))].clone()
            return short % 16 if leaf.dtype is torch.int64 else short  # class numbers
        return leaf

    return pytree.tree_map(one, call)


def original(request: dict[str, Any], folder: str) -> None:
    path, name = request["path"], request["class_name"]
    module, cls = importing.load(path, name)
    example = examples.resolve(module, cls, path, name, None)
    eager = building.construct(cls, example, path, name)
    for parameter in eager.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    call = (list(example.args), example.kwargs)
    given = shapes(call)
    call = cut(call, request["dynamic"])
    torch.manual_seed(1)
    with torch.no_grad():
        outputs = pytree.tree_leaves(channel.plain(eager(*call[0], **call[1])))
    torch.save((eager.state_dict(), call, given, outputs), f"{folder}/original.pt")


def slice_(request: dict[str, Any], folder: str) -> None:
    path = Path(folder, "slice.py")  # a file: triton.jit and torch.jit.script read their functions' source
    path.write_text(request["source"])
    sys.path.insert(0, folder)
    import slice as module  # type: ignore[import-not-found]

    init_args, init_kwargs = examples.split(module.get_init_inputs())
    model = module.Model(*init_args, **init_kwargs).eval()
    state, (args, kwargs), given, expected = torch.load(f"{folder}/original.pt", weights_only=False)
    same_state = [(k, v.shape, v.dtype) for k, v in model.state_dict().items()] == [
        (k, v.shape, v.dtype) for k, v in state.items()
    ]
    model.load_state_dict(state)
    own_args, own_kwargs = examples.split(module.get_inputs())
    if faking.run(model, own_args, own_kwargs) is None:
        model(*own_args, **own_kwargs)
    torch.manual_seed(1)
    with torch.no_grad():
        outputs = pytree.tree_leaves(channel.plain(model(*args, **kwargs)))
    equal = len(outputs) == len(expected) and all(
        type(a) is type(b) and (a is b or (torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b))
        for a, b in zip(outputs, expected, strict=True)
    )
    answer = {
        "state": same_state,
        "inputs": sorted(map(str, shapes((own_args, own_kwargs)))) == sorted(map(str, given)),
    }
    Path(folder, "answer.json").write_text(json.dumps({**answer, "equal": equal}))


def forked(function: Any, request: dict[str, Any], folder: str) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(2, 1)
            function(request, folder)
        except BaseException:
            Path(folder, "answer.json").write_text(
                json.dumps({"problem": f"{traceback.format_exc()}\n{request['source']}"})
            )
            os._exit(1)
        os._exit(0)
    os.waitpid(pid, 0)


def main() -> None:
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            request = json.loads(line)
            forked(original, request, folder)
            if not Path(folder, "answer.json").exists():
                forked(slice_, request, folder)
            print(Path(folder, "answer.json").read_text(), flush=True)


if __name__ == "__main__":
    main()
