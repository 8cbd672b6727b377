"""Several examples of one class: functions that yield them, tables that list them, and the dtype that the module gets."""

from __future__ import annotations

import types

import pytest
import torch

from kernel_lsp import errors
from kernel_lsp.specimen import building, examples


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, *, scale=1.0):
        return x * self.weight * scale


def two():
    yield torch.ones(2, 4)
    yield [[torch.ones(3, 4, dtype=torch.bfloat16)], {"scale": 2.0}]


def resolved(number: int = 0, table=None, **functions) -> examples.Example:
    module = types.SimpleNamespace(**functions)
    return examples.resolve(module, Scaled, "scaled.py", "Scaled", table, number=number)


@pytest.mark.parametrize("name", ["get_inputs", "get_inputs_Scaled"])
def test_a_function_may_yield_examples(name):
    first, second = resolved(**{name: two}), resolved(1, **{name: two})
    assert [first.count, second.count] == [2, 2]
    assert first.args[0].shape == (2, 4) and first.kwargs == {}
    assert second.args[0].shape == (3, 4) and second.kwargs == {"scale": 2.0}
    assert first.inputs_from == second.inputs_from != "pyproject.toml"


def test_lists_of_lists_stay_arguments():
    example = resolved(get_inputs=lambda: [[torch.ones(4)], [torch.ones(4)]], table={"args": []})
    assert example.count == 1 and example.inputs_from == "pyproject.toml"  # two arguments, which forward does not take
    own = resolved(get_inputs_Scaled=lambda: [[torch.ones(4)], [torch.ones(4)]])
    assert own.count == 1 and len(own.args) == 2


def test_a_table_may_list_examples():
    table = {"examples": [{"args": ["float32[2, 4]"]}, {"args": ["float32[1, 4]"], "kwargs": {"scale": 3.0}}]}
    assert resolved(table=table).args[0].shape == (2, 4)
    second = resolved(1, table)
    assert second.args[0].shape == (1, 4) and second.kwargs == {"scale": 3.0} and second.count == 2


def test_equal_seeds_give_equal_examples():
    def random():
        yield [torch.randn(4)]
        yield [torch.randn(4)]

    assert torch.equal(resolved(1, get_inputs=random).args[0], resolved(1, get_inputs=random).args[0])
    assert not torch.equal(resolved(0, get_inputs=random).args[0], resolved(1, get_inputs=random).args[0])


def nothing():
    yield from []


def fails_late():
    yield torch.ones(4)
    raise ValueError("no second one")


@pytest.mark.parametrize(
    ("function", "number", "says"),
    [(nothing, 0, "yields no example"), (fails_late, 0, "no second one"), (two, 2, "2 examples")],
)
def test_what_is_wrong_with_examples_is_told(function, number, says):
    with pytest.raises(errors.ExampleInputsFailed, match=says):
        resolved(number, get_inputs_Scaled=function)


def converted(number: int, function, dtype=torch.float32) -> torch.dtype | None:
    example = resolved(number, get_inputs=function)
    module = building.construct(Scaled, example, "scaled.py", "Scaled").to(dtype)
    return examples.conversion(module, example)


def test_the_module_gets_the_dtype_of_an_example_after_the_first():
    assert converted(0, two) is None and converted(1, two) is torch.bfloat16
    # Where the first example's tensors are not of the parameters' dtype, the module is meant to take others.
    assert converted(1, two, torch.float64) is None

    def mixed():
        yield [torch.ones(4)]
        yield {"x": torch.ones(4, dtype=torch.float16), "scale": torch.ones(4)}

    assert converted(1, mixed) is None


def test_a_table_that_goes_first():
    """The file's functions are for another class then; they give what the table leaves out."""
    shared = {"get_inputs": two, "get_init_inputs": lambda: []}
    table = {"args": ["float32[7, 4]"]}
    assert resolved(table=table, **shared).inputs_from == "get_inputs()"
    first = resolved(table=table | {"first": True}, **shared)
    assert (first.args[0].shape, first.inputs_from, first.init_from) == ((7, 4), "pyproject.toml", "get_init_inputs()")
    assert resolved(table={"init": [], "first": True}, **shared).inputs_from == "get_inputs()"
    own = resolved(table=table | {"first": True}, get_inputs_Scaled=two)
    assert own.args[0].shape == (2, 4)
    assert "pyproject.toml" in resolved(table={"init": [], "first": True}, **shared).init_from


def test_inputs_are_not_the_numbers_that_parameters_are_made_of():
    examples.seed_all(0)
    parameter = torch.randn(4)
    assert not torch.equal(resolved(0, get_inputs=lambda: [torch.randn(4)]).args[0], parameter)
