"""Inputs that find what usual random numbers do not: special values, masks that vary, ends of integers, other settings."""

from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

from kernel_lsp.validation import inputs as module
from kernel_lsp.validation import plan, sizes
from kernel_lsp.validation.inputs import Inputs, Leaf


def made(tensors: list[torch.Tensor], symbols: list[list[str | None]], **more: object) -> Inputs:
    leaves = [Leaf(f"x{i}", t, list(s)) for i, (t, s) in enumerate(zip(tensors, symbols, strict=True))]
    for leaf in leaves:
        if not leaf.example.dtype.is_floating_point and not leaf.example.dtype.is_complex:
            leaf.low, leaf.high = int(leaf.example.min()), int(leaf.example.max())
    found = Inputs(tuple(tensors), {}, leaves, {}, {}, torch.device("cpu"), **more)  # type: ignore[arg-type]
    for leaf in leaves:
        found.example_sizes |= {s: n for n, s in zip(leaf.example.shape, leaf.symbols, strict=True) if s}
    return found


def first(tree: object) -> torch.Tensor:
    return next(t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor))


def test_special_values_are_in_some_rows_and_leave_others_as_they_are():
    given = made([torch.randn(12, 40)], [["b", "n"]])
    with_nan = first(given.sample(given.example_sizes, "nan", 1))
    assert 0 < int(with_nan.isnan().sum()) <= 6 and not with_nan[6:].isnan().any()
    infinite = first(given.sample(given.example_sizes, "infinite", 1))
    assert bool((infinite == float("inf")).any()) and bool((infinite[-1] == -float("inf")).all())
    assert not infinite.isnan().any() and bool(infinite[6:-1].isfinite().all())


def test_complex_inputs_have_special_values_in_both_parts():
    given = made([torch.randn(12, 60, dtype=torch.cfloat)], [["b", "n"]])
    assert given.has_floats
    with_nan = first(given.sample(given.example_sizes, "nan", 1))
    assert with_nan.real.isnan().any() and with_nan.imag.isnan().any() and not with_nan[6:].isnan().any()
    halves = first(given.sample(given.example_sizes, "halves", 1))
    assert torch.equal(torch.view_as_real(halves * 2), torch.view_as_real(halves * 2).round())


def test_a_mask_that_is_all_on_in_the_example_varies_in_every_row():
    for mask in (torch.ones(6, 20, dtype=torch.bool), torch.ones(6, 20, dtype=torch.int64)):
        drawn = first(made([mask], [["b", "n"]]).sample({"b": 6, "n": 20}, "normal", 1))
        assert drawn.dtype is mask.dtype and set(drawn.unique().tolist()) == {0, 1}
        assert bool(drawn.bool().any(-1).all()) and not bool(drawn.bool().all(-1).any())


def test_integers_reach_their_ends_and_what_a_loss_ignores():
    target = torch.randint(2, 9, (30,))
    given = made([target], [["b"]], ignored=-100)
    drawn = first(given.ends({"b": 30}, 1))
    assert set(drawn.tolist()) == {0, int(target.max()), -100}


def test_each_number_and_flag_of_forward_gets_another_value():
    given = made([torch.randn(3)], [["b"]], defaults={"scale": 2.0, "causal": False, "name": "x", "mask": None})
    found = {name: other.kwargs for name, other in given.settings()}
    assert found == {"scale = 3.25": {"scale": 3.25}, "causal = True": {"causal": True}}


def test_magnitudes_fit_the_dtype():
    for dtype, most in ((torch.float32, 1e14), (torch.float16, 6.5e4), (torch.bfloat16, 1e14)):
        drawn = first(made([torch.randn(8, 40).to(dtype)], [["b", "n"]]).sample({"b": 8, "n": 40}, "huge", 3))
        assert bool(drawn.isfinite().all()) and 100 < drawn.float().abs().max().item() < most


def test_an_example_longer_than_what_the_interpreter_is_given_is_tried_once_at_its_own_length():
    given = made([torch.randn(500, 4096)], [["b", "n"]])
    small = sizes.small(given)
    steps = {step.name: step for step in plan.plan(given, "interpreter", small)}
    assert small["n"] < 4096 and steps["one row of the example's width"].sizes["n"] == 4096
    assert steps["all rows of the example"].sizes["b"] == 500
    assert steps["all rows of the example"].late  # seconds for some modules


@pytest.mark.parametrize("mode", ["interpreter", "gpu"])
def test_checks_that_find_what_no_other_one_does_are_not_left_out_for_lack_of_time(mode: str) -> None:
    given = made(
        [torch.randn(500, 4096), torch.randn(500, 4096), torch.ones(500, dtype=torch.int64)], [["b", "n"]] * 2 + [["b"]]
    )
    steps = {step.name: step for step in plan.plan(given, mode)}
    optional = {name for name, step in steps.items() if not step.needed}
    spare = {"wide sizes", "heavy-tailed values", "cancelling values"}
    assert optional == (spare if mode == "interpreter" else set())
    beyond = [
        "a dimension less",
        "one row of x0",
        "x1 without its first dimension",
        "inputs in float16",
        "x0 in float16",
    ]
    for name in (
        "sparse values",
        "huge values",
        "a negative integer",
        "under autocast",
        "converted to float16",
        *beyond,
    ):
        assert steps[name].essential, name
        assert (steps[name].most_seconds is not None) == (mode == "interpreter"), name
    assert steps["gradients"].most_seconds is None


def test_sizes_that_the_module_does_not_take_are_given_up():
    """A concatenation of 48 and 48 channels for a weight of 96; windows of seven in an image of 28."""
    channels = made([torch.randn(2, 48, 16), torch.randn(2, 48, 16)], [["b", "c", "n"], ["b", "d", "n"]])

    def takes(at: dict[str, int]) -> bool:
        args, _ = channels.example(at)
        return args[0].shape[1] + args[1].shape[1] == 96

    at = sizes.fitting(channels, takes)
    args, _ = channels.example(at)
    assert [t.shape[1] for t in args] == [48, 48] and set(at) <= {"b", "n"}
    image = made([torch.randn(2, 28, 28, 16)], [["b", "h", "w", "c"]])
    at = sizes.fitting(image, lambda at: all(at.get(s, 28) % 7 == 0 for s in "hw"))
    assert first(image.example(at)).shape[1:3] == (28, 28) and "b" in at


def test_an_expanded_layout_has_one_element_for_many():
    relaid = module._relay(torch.randn(4, 5), "expanded")
    assert relaid.shape == (4, 5) and relaid.stride()[0] == 0
