"""Whether the Triton kernels of a candidate compute its result, or torch does and they are a decoy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp import schema
from kernel_lsp.validation import agreement, failures, torch_work
from kernel_lsp.validation.oracle import Reference
from kernel_lsp.validation.trees import tensors_of

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: what integers hold that no launch has written, one after the other while the result stays the same; None for poison,
#: which on a GPU would end the process where torch takes them for indices
_FRESH: dict[str, tuple[int | None, ...]] = {"interpreter": (None,), "gpu": (0, 1)}


def check(
    referee: Referee, request: dict[str, Any], tree: Any, reference: Reference, out: Any, message: dict[str, Any]
) -> None:
    """Without a launch, or with launches that do not matter to the result, there is no kernel.

    Raises:
        Failure: that is so.
    """
    if message["launches"] == 0:
        why = f": its launch fails ({message['swallowed'][0]})" if message["swallowed"] else ""
        raise referee.failed("cheating", "launches", f"{schema.NO_LAUNCH}{why}")
    mine = message["operators"]
    same, alone = False, set()
    sought = sorted({t.numel() for t in tensors_of(reference.eager)})
    try:
        for fresh in _FRESH[referee.mode]:
            muted = {**request, "muted": True, "sought": sought, "fresh_integers": fresh}
            with referee.asking(muted, (*tree, None), reference.eager, tuple(referee.inputs.names)) as answer:
                same = agreement.identical(out, answer.tree)
                alone = {tuple(found) for found in answer.message["alone"]}
            if not same:
                break
    except failures.Failure as failure:
        if failure.status in ("timeout", "out-of-memory") or not _alive(referee):
            raise
    if same:
        reason = "its result is the same when its Triton kernels do not run: they are a decoy"
        raise referee.failed("cheating", "launches", reason)
    given = [t for t in (*tensors_of(tree), *referee.module.parameters()) if t.numel() in sought]
    alone -= {tuple(torch_work.checksum(t)) for t in given}  # a result may be what it was given
    results = [t for t in tensors_of(out) if _tells_something(t)]
    if results and all(tuple(torch_work.checksum(t)) in alone for t in results):
        reason = f"torch computes the result ({_names(mine)}): its Triton kernels only copy it"
        raise referee.failed("cheating", "launches", reason)
    if torch_work.covers(mine, eagers := referee.oracle.work(tree)):
        reason = f"torch does in it what it does for the module ({_names(eagers)}): {schema.SAVES_NOTHING}"
        raise referee.failed("cheating", "launches", reason)
    count = "1 Triton launch" if message["launches"] == 1 else f"{message['launches']} Triton launches"
    names = ", ".join(f"{n} × {c}" if c > 1 else n for n, (c, _) in mine.items())
    beside = f"; torch computes {names}" if names else ""
    referee.passed(
        "launches",
        f"{count} a call, and the result depends on {'it' if message['launches'] == 1 else 'them'}{beside}",
    )


def _names(work: torch_work.Work) -> str:
    return ", ".join(sorted(work)) or "outside of its operators"


def _tells_something(tensor: torch.Tensor) -> bool:
    """Whether its values are more than one number, which two computations may have in common by chance."""
    return tensor.numel() > 1 and bool((tensor != tensor.reshape(-1)[0]).any())


def _alive(referee: Referee) -> bool:
    try:
        referee.ask({"do": "to", "dtype": "none"})
    except failures.Failure as failure:
        return "its process" not in failure.reason
    return True
