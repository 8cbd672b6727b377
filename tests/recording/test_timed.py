"""Which recorded calls a kernel is timed at."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp.recording import examples, timed
from kernel_lsp.recording.records import Shape
from tests.recording.made import run_of, shape, tensor


def table(*shapes: Shape, **further: object):
    file = Path("/project/double.py")
    return timed.table_of(examples.recorded_of(file, [run_of(file, list(shapes), **further)])["Double"])


def told(found) -> list[tuple[str, int]]:
    return [(one["args"][0]["tensor"], one["calls"]) for one in found["shapes"]]


def test_the_most_time_comes_first_and_all_time_of_the_class_is_told():
    often = shape(tensor("float32[2]"), calls=500)
    slow = shape(tensor("float32[64]"), calls=10, microseconds=1000.0)
    trained = shape(tensor("float32[8]"), calls=100, modes=["training", "grad"], trained=True)
    found = table(often, slow, trained)
    assert found["from"] == "train.py" and told(found) == [("float32[64]", 10), ("float32[2]", 500)]
    assert found["seconds"] == pytest.approx((5000 + 10000 + 1000) / 1e6)
    assert [one["seconds"] for one in found["shapes"]] == pytest.approx([0.01, 0.005])


def test_calls_that_take_the_same_time_are_one_kind():
    same = [
        shape(tensor("int64[8]", below=100), calls=3),
        shape(tensor("int64[8]", below=90, device="cuda"), calls=4),
        shape(tensor("int64[8]"), calls=5, modes=["inference"]),
    ]
    other = shape(tensor("int64[8]", order="strided", stride=[2]), calls=6)
    training = shape(tensor("int64[8]"), calls=9, modes=["training"])
    flag = shape(tensor("int64[8]"), {"value": True}, calls=7)
    wider = shape(tensor("int64[8]"), calls=8, init={"args": [{"value": 8}], "kwargs": {}})
    assert sorted(one["calls"] for one in table(*same, other, training, flag, wider)["shapes"]) == [6, 7, 8, 9, 12]


def test_a_call_inside_another_of_the_class_does_not_count():
    found = table(shape(tensor("float32[2]"), calls=30, nested_calls=20), shape(tensor("float32[3]"), nested_calls=100))
    assert told(found) == [("float32[2]", 10)]


@pytest.mark.parametrize(
    "given",
    [
        shape(tensor("float32[2]"), modes=["grad"], trained=True),
        shape(tensor("float32[2]", grad=True), modes=["grad"]),
        shape(tensor("float32[2]"), modes=["autocast bfloat16"]),
        shape(tensor("float32[2]"), {"other": "shop.Config"}),
        shape({"value": 2}),
    ],
)
def test_what_no_kernel_takes_or_cannot_be_made_again_is_not_told(given):
    assert table(given) is None


def test_a_constructor_that_cannot_be_called_again_is_no_obstacle():
    config = {"args": [{"other": "transformers.LlamaConfig"}], "kwargs": {}}
    assert told(table(shape(tensor("float32[2]"), init=config, calls=4))) == [("float32[2]", 4)]
