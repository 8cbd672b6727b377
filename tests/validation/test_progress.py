"""What a verdict says where the time was over, and whether a check that may be left out would take others' time."""

from __future__ import annotations

import time
import types

import pytest
import torch

from kernel_lsp import schema
from kernel_lsp.validation import candidate_state, plan
from kernel_lsp.validation.failures import Failure
from kernel_lsp.validation.inputs import Inputs, Leaf
from kernel_lsp.validation.progress import Progress, time_over, time_over_between
from kernel_lsp.validation.referee import Referee

ADVICE = "Raise kernelLsp.seconds or use smaller example inputs."


def step(name: str, essential: bool = True) -> plan.Step:
    return plan.Step(name, lambda inputs: inputs.args, essential=essential)


def test_a_time_out_names_the_check_how_far_it_got_and_what_to_do() -> None:
    made = [schema.Check("drop-in", True), schema.Check("example inputs", True)]
    progress = Progress(made, check="tiny values", began=time.monotonic() - 27, seconds=[2.0, 3.0], left=[step("a")])
    where = "the time was over in the check “tiny values”, 27 s after it began (the longest before took 3 s)"
    assert time_over(progress) == f"{where}: 2 checks had passed, none failed, 1 more has to be made. {ADVICE}"
    progress = Progress(made[:1], check="example inputs", began=time.monotonic())
    where = "the time was over in the check “example inputs”, 0 s after it began"
    assert time_over(progress) == f"{where}: 1 check had passed, none failed. {ADVICE}"


def test_before_the_first_check_and_between_two_that_is_said() -> None:
    assert time_over(Progress()) == f"the time was over while the kernel was loaded, before the first check. {ADVICE}"
    said = time_over_between(Progress([schema.Check("drop-in", True)]), ["gradients", "float64"])
    assert said.startswith("the time was over before all was checked that has to be (gradients, float64): 1 check had")
    assert said.endswith(f", none failed, 2 more have to be made. {ADVICE}")


@pytest.mark.parametrize(("seconds", "leaves"), [([], True), ([1.0, 9.0, 1.0], True), ([6.0, 5.0, 0.1], False)])
def test_one_more_check_is_made_where_twice_the_median_leaves_time_for_the_rest(
    seconds: list[float], leaves: bool
) -> None:
    progress = Progress(seconds=seconds, left=[step("a"), step("b")])
    assert progress.leaves_time(time.monotonic() + 29) is leaves


def test_what_has_to_be_made_is_essential_or_made_always() -> None:
    assert step("a").needed and not step("b", essential=False).needed
    assert plan.Step("c", lambda inputs: inputs.args, patience=plan.ALWAYS).needed


def referee_with(progress: Progress) -> Referee:
    """One whose trial was stopped, after some checks."""
    trial = types.SimpleNamespace(stopped=True, limits=[], owed=[], deadline=time.monotonic(), text=lambda: "")
    inputs = Inputs((torch.ones(2),), {}, [Leaf("x", torch.ones(2), [None])], {}, {}, torch.device("cpu"))
    referee = Referee(torch.nn.ReLU(), inputs, trial, "gpu", lambda name, data: None, 1.0, progress=progress)  # type: ignore[arg-type]
    referee.prepare()
    return referee


def test_a_kernel_that_hangs_when_it_is_loaded_again_is_not_said_to_hang_in_the_check_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hangs(*_: object) -> None:
        raise Failure("timeout", "no answer")

    monkeypatch.setattr(candidate_state, "reload", hangs)
    made = [schema.Check("drop-in", True), schema.Check("odd sizes", True)]
    put_off = [step("gradients"), step("wide sizes", essential=False)]
    progress = Progress(made, check="odd sizes", began=time.monotonic() - 140, seconds=[1.0], deferred=put_off)
    verdict = referee_with(progress).finish()
    how_far = "2 checks had passed, none failed, 1 more has to be made"
    assert verdict.status == "timeout"
    assert verdict.reason == f"the time was over while the kernel was loaded: {how_far}. {ADVICE}"


def test_waiting_for_the_device_does_not_count_as_time_in_the_check() -> None:
    progress = Progress([], check="odd sizes", began=time.monotonic() - 140)
    referee_with(progress).put_off(130.0)
    assert "10 s after it began" in time_over(progress)
