"""The candidate in the trial before it is called: imported and constructed, its launches compiled, with the module's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernel_lsp.validation import channel, plan, precompiling

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee


def load(referee: Referee, compiled: list[plan.Step]) -> None:
    """Have the candidate imported and constructed, and see that its state is the module's. ``compiled``: as the steps of ``reload``.

    Raises:
        Failure: "not-drop-in" where its state_dict is another, or as ``Referee.ask``.
    """
    answer = referee.ask(_load_message(referee))
    mine = {k: (tuple(shape), dtype) for k, shape, dtype in answer["state"]}
    theirs = {k: (tuple(v.shape), str(v.dtype)) for k, v in referee.module.state_dict().items()}
    for key in sorted(theirs.keys() ^ mine.keys()):
        where = "lacks" if key in theirs else "has an extra"
        raise referee.failed("not-drop-in", "state_dict", f"its state_dict {where} {key!r}")
    for key, (shape, dtype) in theirs.items():
        if mine[key] != (shape, dtype):
            reason = f"its {key!r} is {mine[key][1]}{list(mine[key][0])}, the module's is {dtype}{list(shape)}"
            raise referee.failed("not-drop-in", "state_dict", reason)
    # Before the state, since a call on values that mean nothing may move running statistics.
    _precompile(referee, compiled)
    send_state(referee)
    referee.passed("drop-in", f"same constructor, same state_dict ({len(theirs)} entries)")


def _load_message(referee: Referee) -> dict[str, Any]:
    return {"do": "load", "path": referee.trial.source, "training": referee.training}


def reload(referee: Referee, steps: Sequence[plan.Step] = ()) -> None:
    """Have the candidate imported and constructed anew: the checks may have converted and trained what was there.

    ``steps``: whose launches are compiled before it gets the module's state.
    """
    referee.ask(_load_message(referee))
    if steps:
        _precompile(referee, steps)
    send_state(referee)


def send_state(referee: Referee) -> None:
    """Give the candidate the module's parameters and buffers."""
    referee.ask({"do": "state"}, dict(referee.module.state_dict()))


def autotunes(referee: Referee) -> bool:
    """Whether the candidate has autotuned kernels, as far as its text tells."""
    return "autotune" in referee.trial.text()


def rewind(referee: Referee) -> None:
    """Put back what calls change in the candidate, as the oracle does with the module: each call begins in one state."""
    if moving := referee.oracle.moving():
        referee.ask({"do": "restore"}, moving)


def _precompile(referee: Referee, steps: Sequence[plan.Step]) -> None:
    """Have every launch that the steps will need compiled, on all cores at once."""
    if referee.mode != "gpu":
        return
    referee.emit("progress", {"stage": "check", "message": "compiling", "fraction": 0.0})
    with referee.spending("compile (part of load)"):
        referee.ask({"do": "precompile", "cases": launched(referee, steps)})


def launched(referee: Referee, steps: Sequence[plan.Step]) -> list[Any]:
    """The calls of some steps, as shapes without values."""
    called = [step for step in steps if step.kind == "values" and step.sizes is not None]
    return [_case(referee, step.sizes or {}, step.layout) for step in called]


def cases(referee: Referee, sizes: list[dict[str, int]]) -> list[Any]:
    """Calls at some sizes of the dynamic dimensions, as the trial is told of them: shapes without values."""
    return [_case(referee, one) for one in sizes]


def _case(referee: Referee, sizes: dict[str, int], layout: str = "") -> Any:
    shaped = referee.inputs.shaped(sizes)
    return channel.describe(precompiling.shapes_of(referee.inputs.relaid(shaped, layout)), [])
