"""Which recorded calls are timed, and the inputs that are made for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernel_lsp.specimen.examples import Example
from kernel_lsp.validation.inputs import Inputs, Leaf
from kernel_lsp.worker import recorded_shapes
from tests.recording.made import tensor


class Scaled(torch.nn.Module):
    def __init__(self, width: int, scale: float = 2.0, config: Any = None, *more: int, **further: int) -> None:
        super().__init__()
        self.drop = torch.nn.Dropout()

    def forward(self, x, mask=None, *, power=1):
        return x


EXAMPLE = Example((40,), {"config": object()})
CPU = torch.device("cpu")


def inputs_of(*args: Any, symbols: tuple[list[str | None], ...] = (["s0", None],), **kwargs: Any) -> Inputs:
    tensors = [value for value in [*args, *kwargs.values()] if isinstance(value, torch.Tensor)]
    leaves = [Leaf(f"x{i}", t, list(s)) for i, (t, s) in enumerate(zip(tensors, symbols, strict=True))]
    sizes = {s: n for leaf in leaves for s, n in zip(leaf.symbols, leaf.example.shape, strict=True) if s}
    return Inputs(args, kwargs, leaves, {}, {}, CPU, sizes)


def call(
    *args: dict[str, Any],
    calls: int = 10,
    seconds: float = 1.0,
    init: Any = None,
    training: bool = False,
    **kwargs: Any,
) -> dict[str, Any]:
    about = {"init": init, "training": training, "calls": calls, "seconds": seconds}
    return {"args": list(args), "kwargs": kwargs} | about


def find(*calls: dict[str, Any], inputs: Inputs | None = None):
    table = {"from": "train.py", "seconds": sum(one["seconds"] for one in calls), "shapes": list(calls)}
    return recorded_shapes.find(table, Scaled(40), EXAMPLE, inputs or inputs_of(torch.randn(8, 40)))


def test_the_shapes_with_most_of_the_time_are_taken():
    calls = [
        call(tensor(f"float32[{n}, 40]"), seconds=s, calls=n) for n, s in ((2, 50.0), (8, 30.0), (3, 16.0), (4, 4.0))
    ]
    found = find(*calls)
    assert [shape.text for shape in found.shapes] == ["float32[2, 40]", "float32[3, 40]"]  # with the example's, 96 %
    assert (found.example_calls, found.example_seconds) == (8, 30.0)
    many = find(*(call(tensor(f"float32[{n}, 40]")) for n in range(20, 40)))
    assert len(many.shapes) == recorded_shapes.MOST and not many.example_calls


def test_one_that_is_among_the_example_s_sizes_is_made_as_the_example_is():
    example = torch.randn(8, 40)
    leaf = inputs_of(example)
    (shape,) = find(call(tensor("float32[3, 40]")), inputs=leaf).shapes
    first, second = shape.make(), shape.make()
    assert first[0][0].shape == (3, 40) and not torch.equal(first[0][0], second[0][0])
    assert shape.names == ("input x",) and shape.specs[0].stride == [40, 1]
    masks = inputs_of(torch.zeros(8, dtype=torch.int64), symbols=(["s0"],))
    masks.leaves[0].low, masks.leaves[0].high = 0, 0
    (other,) = find(call(tensor("int64[5]", below=100)), inputs=masks).shapes
    assert other.make()[0][0].tolist() == [0] * 5  # what the example holds, not what the recording bounds


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ([tensor("float32[3, 48]")], {}, "float32[3, 48]"),
        ([tensor("float16[3, 40]")], {}, "float16[3, 40]"),
        ([tensor("float32[3, 40]", order="transposed", stride=[1, 3])], {}, "float32[3, 40] with strides [1, 3]"),
        ([tensor("float32[3, 40]")], {"power": {"value": 2}}, "float32[3, 40], power=2"),
        ([tensor("float32[3, 40]"), tensor("bool[3]")], {}, "float32[3, 40], bool[3]"),
        ([], {"x": tensor("float32[3, 40]")}, "x=float32[3, 40]"),
    ],
)
def test_any_other_call_is_made_from_the_recording(args, kwargs, text):
    (shape,) = find(call(*args, **kwargs)).shapes
    assert shape.text == text
    made = shape.make()
    tensors = [value for value in [*made[0], *made[1].values()] if isinstance(value, torch.Tensor)]
    assert [list(t.shape) for t in tensors] == [spec.shape for spec in shape.specs]
    assert [list(t.stride()) for t in tensors] == [spec.stride for spec in shape.specs]
    assert not torch.equal(tensors[0], shape.make()[0][0] if args else shape.make()[1]["x"])


def test_the_example_s_own_shape_is_not_timed_twice_but_in_another_memory_order():
    example = inputs_of(torch.randn(40, 8).t())
    same = tensor("float32[8, 40]", order="transposed", stride=[1, 8])
    found = find(call(same, calls=5), call(tensor("float32[8, 40]"), calls=6), inputs=example)
    assert found.example_calls == 5 and [shape.calls for shape in found.shapes] == [6]


@pytest.mark.parametrize(
    ("init", "counts"),
    [
        (None, True),  # not seen
        ({"args": [{"value": 40}], "kwargs": {}}, True),
        ({"args": [], "kwargs": {"width": {"value": 40}, "scale": {"value": 2.0}}}, True),
        ({"args": [{"value": 40}], "kwargs": {"config": {"other": "shop.Config"}}}, True),  # nobody can tell
        ({"args": [{"value": 48}], "kwargs": {}}, False),
        ({"args": [{"value": 40}, {"value": 3.0}], "kwargs": {}}, False),
        ({"args": [{"value": 40}], "kwargs": {"further": {"value": 1}}}, False),
        ({"args": [{"value": 40}, {"value": 2.0}, {"value": None}, {"value": 7}], "kwargs": {}}, False),
        ({"args": [tensor("float32[40]")], "kwargs": {}}, False),
        ({"args": [], "kwargs": {}}, True),  # as no such constructor can be called, nobody can tell
    ],
)
def test_calls_of_modules_that_are_constructed_otherwise_are_left_out(init, counts):
    example = Example((40,), {})
    table = {"from": "train.py", "seconds": 1.0, "shapes": [call(tensor("float32[3, 40]"), init=init, calls=70)]}
    found = recorded_shapes.find(table, Scaled(40), example, inputs_of(torch.randn(8, 40)))
    assert [shape.calls for shape in found.shapes] == ([70] if counts else [])
    assert found.left_out == ([] if counts else ["70 calls of modules with other constructor arguments"])


def test_calls_in_another_mode_are_left_out_where_that_matters():
    calls = [call(tensor("float32[3, 40]"), calls=7), call(tensor("float32[3, 40]"), training=True, calls=1)]
    found = find(*calls)
    assert [shape.calls for shape in found.shapes] == [7] and found.left_out == ["1 call in training mode"]
    table = {"from": "train.py", "seconds": 1.0, "shapes": calls}
    plain = recorded_shapes.find(table, torch.nn.ReLU(), Example(), inputs_of(torch.randn(8, 40)))
    assert [shape.calls for shape in plain.shapes] == [8]


def test_dimensions_that_the_checks_fix_later_are_as_recorded():
    inputs = inputs_of(torch.randn(8, 40))
    (shape,) = find(call(tensor("float32[3, 40]")), inputs=inputs).shapes
    inputs.fix({"s0"})
    assert shape.make()[0][0].shape == (3, 40)


def test_nothing_recorded_is_nothing_to_time():
    assert recorded_shapes.find(None, Scaled(40), EXAMPLE, inputs_of(torch.randn(8, 40))) is None


def test_under_the_interpreter_recordings_change_nothing(worker, write):
    path = write(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x): return x * 2\n"
        "def get_inputs(): return [torch.randn(8, 40)]\n"
    )
    asked = {"path": path, "class_name": "Net", "device": "interpreter"}
    source = worker.call("synthesize", **asked)["candidates"][0]["source"]
    table = {"from": "train.py", "seconds": 1.0, "shapes": [call(tensor("float32[3, 40]"))]}
    result = worker.call("validate", source=source, seconds=60, measure="eager", recorded=table, **asked)
    assert result["verdict"]["status"] == "ok", result["verdict"]["reason"]
    assert result["measurement"]["shapes"] == [] and "no CUDA GPU" in result["measurement"]["missing"]
