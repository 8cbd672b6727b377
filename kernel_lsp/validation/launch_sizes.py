"""Sizes at which a candidate launches its kernels, where it does not at those that were cut down for the interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from kernel_lsp.validation import failures, sizes

if TYPE_CHECKING:
    from kernel_lsp.validation.referee import Referee

#: seconds for float64's answer, which is not looked at
_EXACT_SECONDS = 0.1


def find(referee: Referee) -> dict[str, int] | None:
    """Small sizes at which the candidate launches its kernels; None where it does not at the example's own either.

    Dimensions that have to be as long as the example's are fixed in the referee's inputs.
    """
    whole = dict(referee.inputs.example_sizes)
    if not launches(referee, whole):
        return None
    return sizes.fitting(referee.inputs, lambda at: launches(referee, at))


def launches(referee: Referee, at: dict[str, int]) -> bool:
    """Whether a call at these sizes launches a kernel and ends well."""
    tree = referee.inputs.example(at)
    request = {"do": "call", "names": list(referee.inputs.names), "seed": referee.oracle.seed}
    try:
        reference = referee.oracle.answer(tree, seconds=_EXACT_SECONDS)
        with referee.asking(request, (*tree, None), reference.eager, tuple(referee.inputs.names)) as answer:
            return bool(answer.message["launches"])
    except (torch.OutOfMemoryError, failures.Failure):
        raise
    except Exception:  # the module does not take such inputs
        return False
