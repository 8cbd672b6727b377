"""Two kernels for one module, timed in turn in one process: whether one is slower than the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kernel_lsp import schema
from kernel_lsp.validation import failures, measuring, ratios, timing, tuning
from kernel_lsp.validation.referee import Referee
from kernel_lsp.validation.trees import without_memory


def compare(referee: Referee, sources: list[str], emit: Callable[[str, Any], None]) -> schema.SpeedComparison:
    """Time ``sources``, paths of the kernel of now and of the one before, with eager, at the example's sizes.

    Each has to give what the module gives on values that it has not seen. Where a time cannot be had, ``missing`` says
    why.

    Raises:
        torch.OutOfMemoryError: the GPU has too little memory for both.
    """
    torch.cuda.set_device(referee.inputs.device)
    referee.prepare()
    try:
        tree = measuring.fresh(referee)
        referee.outputs = without_memory(referee.oracle.answer(tree, seconds=0.0).eager)
        emit("progress", {"stage": "time", "message": "compiling the kernel and the one before", "fraction": 0.3})
        tried = tuning.load(referee, sources, all_needed=True)
        tuning.check(referee, tried)
        if wrong := next((one.reason for one in tried if one.reason), ""):
            return schema.SpeedComparison(missing=wrong)
        emit("progress", {"stage": "time", "message": "timing the kernel beside the one before", "fraction": 0.7})
        names = [str(i) for i in range(len(sources))]
        reference = measuring.right_answer(referee, tree)
        request = {"do": "time_rounds", "names": names}
        with referee.alone(), referee.asking(request, (*tree, None), referee.outputs) as answer:
            rounds = answer.message["rounds"]
            problem = measuring.difference(referee, tree, reference, answer.tree)
    except failures.Failure as failure:
        return schema.SpeedComparison(missing=failure.reason)
    if problem:
        return schema.SpeedComparison(missing=f"{measuring.MEANWHILE}: {problem}")
    series = [rounds.get(name, []) for name in ("eager", *names)]
    if len(set(map(len, series))) != 1 or not all(time > 0 for times in series for time in times) or not series[0]:
        return schema.SpeedComparison(missing="the times of the rounds are not whole")
    eager, now, before = series
    found = ratios.ratio(now, before)
    if found is None:
        return schema.SpeedComparison(missing=f"{len(now)} rounds are too few to tell")
    return schema.SpeedComparison(timing.summary(now), timing.summary(before), timing.summary(eager), found)
