"""The step in an unmarked process on a CUDA GPU: no variable of ours names Triton's cache there, and CUDA starts confined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.validation.adversarial import corpus
from tests.validation.adversarial.material import softmax
from tests.validation.modules import SOFTMAX
from tests.validation.test_calls_outside import ELSEWHERE, NAME, TELLS, step_of

pytestmark = pytest.mark.gpu

Validate = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("tell", [*TELLS, "interpreted"])
def test_who_is_right_only_where_it_sees_a_validation_is_found_out(validate: Validate, tell: str) -> None:
    entry = corpus.read(f"tampering/{tell}")
    verdict = validate(entry.module, entry.class_name, entry.kernel, device="cuda")["verdict"]
    assert verdict["status"] in entry.expected, verdict
    if tell != "interpreted":  # which is wrong wherever there is a GPU
        assert not step_of(verdict)["passed"]


@pytest.mark.parametrize(
    "name",
    [
        *("honest/counts_calls", "honest/running_average", "honest/in_place_returned", "honest/dict_with_none"),
        *("honest/draws_from_python", "honest/autotuned", "honest/half_module", "honest/tiled_product"),
    ],
)
def test_an_honest_kernel_passes_and_the_step_is_among_its_checks(validate: Validate, name: str) -> None:
    entry = corpus.read(name)
    result = validate(entry.module, entry.class_name, entry.kernel, device="cuda", **entry.how)
    assert result["verdict"]["status"] == "ok", result["verdict"]["reason"]
    assert step_of(result["verdict"])["passed"]
    assert not any(NAME in limit for limit in result["verdict"]["limits"])


def test_what_it_raises_only_there_is_reported(validate: Validate) -> None:
    verdict = validate(SOFTMAX, "Softmax", softmax(last=ELSEWHERE + "raise ValueError('not here')"), device="cuda")
    assert verdict["verdict"]["status"] == "crashed"
    assert verdict["verdict"]["reason"] == "in an unmarked process: ValueError: not here"


def test_nothing_names_the_cache(validate: Validate) -> None:
    first = "import os\nvalidated = bool({'TRITON_HOME', 'CUDA_CACHE_PATH', 'HF_HUB_OFFLINE'} & set(os.environ))"
    verdict = validate(
        SOFTMAX, "Softmax", softmax(first=first, last="y = y if not validated else 2 * y"), device="cuda"
    )
    assert verdict["verdict"]["status"] == "wrong"  # in the trial, which has such variables
    first = first.replace("validated = bool(", "validated = not bool(")
    verdict = validate(
        SOFTMAX, "Softmax", softmax(first=first, last="y = y if not validated else 2 * y"), device="cuda"
    )
    assert verdict["verdict"]["status"] == "cheating"
