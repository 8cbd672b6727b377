"""What is read of a kernel file's envelope: the sizes for which it holds."""

from __future__ import annotations

import ast

import pytest

from kernel_lsp import class_schema, envelope_sizes
from kernel_lsp.jobs import header

BODY = """
class A:
    def _in_envelope(self, x, y, *, z=None):
        try:
            return (
                not torch.jit.is_tracing()
                and x.dim() == 3
                {}
                and 0 < x.numel() < _MOST_ELEMENTS
                and weight.shape == (5, 256)
                and 4 * x.shape[0] < _MOST_ELEMENTS
            )
        except (AttributeError, LookupError):
            return False
"""


def body(*conditions):
    return BODY.format("\n                ".join(f"and {text}" for text in conditions))


def specimen(**inputs):
    """``x=("b", 16)``: free sizes by their names, which are 8 in the example."""
    specs = [
        class_schema.TensorSpec(
            name,
            [8 if isinstance(n, str) else n for n in sizes],
            "float32",
            dynamic=[n if isinstance(n, str) else None for n in sizes],
        )
        for name, sizes in inputs.items()
    ]
    free = {n: [2, envelope_sizes.UNBOUNDED] for sizes in inputs.values() for n in sizes if isinstance(n, str)}
    return class_schema.Specimen("A", "a", "", "get_inputs()", specs, dynamic=free)


def test_conditions_on_the_sizes_of_arguments_are_read():
    found = envelope_sizes.conditions(body("y.shape == (8, 3)", "x.shape[0] * x.shape[1] == 256", "z.shape[0] != 1"))
    assert [ast.unparse(one) for one in found] == [
        *("y.shape[0] == 8", "y.shape[1] == 3", "x.shape[0] * x.shape[1] == 256", "z.shape[0] != 1")
    ]
    assert envelope_sizes.conditions("not Python (") == envelope_sizes.conditions("x = 1") == []


@pytest.mark.parametrize(
    ("conditions", "sizes"),
    [
        ((), ["b: 1 or more, 8 in the example", "s: 1 or more, 8 in the example"]),
        (("x.shape[0] != 1", "x.shape[1] <= 64"), ["b: 2 or more, 8 in the example", "s: 1 to 64, 8 in the example"]),
        (
            ("y.shape[0] == x.shape[0]", "x.shape[0] >= 3"),
            ["b: 3 or more, 8 in the example", "s: 1 or more, 8 in the example"],
        ),
        (
            ("x.shape[0] * x.shape[1] == 64",),
            ["b: 1 or more, 8 in the example", "s: 1 or more, 8 in the example", "b * s == 64"],
        ),
    ],
)
def test_the_header_has_the_sizes_that_the_envelope_takes(conditions, sizes):
    assert header.envelope(specimen(x=("b", "s", 16), y=("b",)), body=body(*conditions))["sizes"] == sizes


def test_a_kernel_is_for_fewer_sizes_than_the_module_where_these_were_seen_to_be_taken():
    known = specimen(x=(8, "s", 16), y=(8,))
    found = body("x.shape[0] == 8", "x.shape[2] == 16", "y.shape == (8,)", "x.shape[1] * x.shape[0] == 64")
    assert envelope_sizes.only_where(found, known) == (
        "Kernel only where x.shape[1] * x.shape[0] == 64; other calls run eager."
    )
    known.inputs[0].narrowed, known.inputs[1].narrowed = [0], [0]
    assert envelope_sizes.only_where(found, known) == (
        "Kernel only where x.shape[0] == 8, y.shape[0] == 8 and 1 more; other calls run eager."
    )
    pinned = body("x.shape == (8, 8, 16)")
    known.inputs[0].narrowed = []
    assert envelope_sizes.only_where(pinned, known) == "Kernel only where x.shape[1] == 8; other calls run eager."
    of_one = specimen(x=(1, "s", 16))
    of_one.inputs[0].narrowed = [0]
    assert envelope_sizes.only_where(body("x.shape[0] == 1"), of_one) == (
        "Kernel only where x.shape[0] == 1; other calls run eager. A size of 1 in the example stays 1: give 2 or more for it to vary."
    )
    assert envelope_sizes.only_where(body("x.shape[2] == 16"), known) == ""
    assert envelope_sizes.only_where(found, None) == ""
