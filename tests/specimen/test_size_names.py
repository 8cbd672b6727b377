"""The free sizes of a class are called what its forward calls them, else after the argument and the dimension."""

import pytest

from kernel_lsp import class_schema
from kernel_lsp.specimen import size_names


class Plain:
    def forward(self, x, pair):
        return x


class Named:
    def forward(self, x, mask):
        batch, time, _ = x.shape
        heads = mask.size(-1)
        x = x.transpose(0, 1)
        width, _, other = x.shape
        return width, heads, other, batch, time


class Reused:
    def forward(self, x):
        x = x.T
        rows, cols = x.shape
        return rows, cols


def spec(name: str, *symbols: str | None) -> class_schema.TensorSpec:
    return class_schema.TensorSpec(name, [2] * len(symbols), "float32", dynamic=list(symbols))


@pytest.mark.parametrize(
    ("kind", "inputs", "expected"),
    [
        (Plain, [spec("x", "s77", None), spec("pair[0]", "s77", "s5")], [["x_0", None], ["x_0", "pair_0_1"]]),
        (Plain, [spec("x", "2*s77"), spec("pair[1]", "s77")], [["2*pair_1_0"], ["pair_1_0"]]),
        (Plain, [spec("x_0", "s1", "s2"), spec("x", "s3", None)], [["x_0_0", "x_0_1"], ["x_0", None]]),
        (
            Named,
            [spec("x", "s0", "s1", "s2"), spec("mask", "s0", "s3")],
            [["batch", "time", "x_2"], ["batch", "heads"]],
        ),
        (Reused, [spec("x", "s0", "s1")], [["x_0", "x_1"]]),
    ],
    ids=["argument and dimension", "an expression before its symbol", "alike", "forward's own names", "another x"],
)
def test_the_names(kind, inputs, expected):
    specimen = class_schema.Specimen(
        "Model", "m", init_args="", inputs_from="", outputs=[], inputs=inputs, dynamic={"s77": [2, 9], "u0": [0, 4]}
    )
    size_names.rename(specimen, kind.forward)
    assert [one.dynamic for one in specimen.inputs] == expected
    assert list(specimen.dynamic)[1] == "u0" and list(specimen.dynamic.values()) == [[2, 9], [0, 4]]


def test_a_forward_without_a_source_has_names_all_the_same():
    namespace = {}
    exec("def forward(self, x): return x", namespace)
    specimen = class_schema.Specimen(
        "Model", "m", init_args="", inputs_from="", outputs=[], inputs=[spec("x", "s0")], dynamic={"s0": [2, 9]}
    )
    size_names.rename(specimen, namespace["forward"])
    assert specimen.dynamic == {"x_0": [2, 9]} and specimen.inputs[0].dynamic == ["x_0"]
