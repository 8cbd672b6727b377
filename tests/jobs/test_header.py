"""The envelope as the header of a kernel file says it."""

from __future__ import annotations

from kernel_lsp.class_schema import Specimen, TensorSpec
from kernel_lsp.jobs import header
from kernel_lsp.recording.calls_left_to_eager import why_outside
from kernel_lsp.recording.records import Shape


def specimen(inputs: list[TensorSpec], dynamic: dict[str, list[int]]) -> Specimen:
    return Specimen("Block", "blocks", "", "get_inputs_Block()", inputs=inputs, dynamic=dynamic)


def test_a_dimension_that_is_a_difference_has_a_name_of_its_own() -> None:
    x = TensorSpec("x", [4, 32], "float32", dynamic=["x_0", "48 - skip_1"])
    skip = TensorSpec("skip", [4, 16], "float32", dynamic=["x_0", "skip_1"])
    given = specimen([x, skip], {"x_0": [2, 100], "48 - skip_1": [2, 46], "skip_1": [2, 46]})
    made = header.envelope(given)
    assert made["inputs"] == ["x: float32[x_0, x_1]", "skip: float32[x_0, skip_1]"]
    assert "x_1 = 48 - skip_1: 2 to 46, 32 in the example" in made["sizes"]
    assert given.inputs[0].dynamic == ["x_0", "48 - skip_1"]
    recorded = [{"tensor": "float32[4, 47]"}, {"tensor": "float32[4, 1]"}]
    assert why_outside({"envelope": made}, Shape(args=recorded, kwargs={})) == "x_1 = 47"


def test_a_multiple_stays_as_it_is_and_a_name_in_use_is_not_taken() -> None:
    x = TensorSpec("x", [4, 32], "float32", dynamic=["2*x_1", "x_1 + 1"])
    given = specimen([x], {"2*x_1": [2, 100], "x_1 + 1": [2, 46], "x_1": [2, 46]})
    assert header.envelope(given)["inputs"] == ["x: float32[2*x_1, x_1 + 1]"]
