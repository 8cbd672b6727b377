"""Where the search finds inputs for the other side of a comparison, and that it finds the same on a slow machine."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernel_lsp import schema
from kernel_lsp.validation import weights
from tests.validation.adversarial.material import elementwise, replaced
from tests.validation.adversarial.material_of_integers import of_labels, of_tokens, windowed
from tests.validation.test_conditions import OUT_OF_REACH

#: a scale that is positive in the constructor; ``others``: statements there
SIGNED = """
class Signed(nn.Module):
    def __init__(self):
        super().__init__()
        {others}
    def forward(self, x):
        return torch.where(self.scale > 0, {x} * self.scale, {x} - self.scale)
def get_inputs(): return [torch.randn(7, 40)]
"""

#: a comparison of which one side shows late in the search, and a right kernel
OPPOSITE = """
class Opposite(nn.Module):
    def forward(self, x, y):
        return torch.where((x == -y).all(-1, keepdim=True), 2.0 * x, x + 3.0 * y)
def get_inputs(): return [torch.randn(7, 40), torch.randn(7, 40)]
"""
OPPOSITE_KERNEL = """
@triton.jit
def opposite_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    x, y = tl.load(x_ptr + at, mask=mask, other=0.0), tl.load(y_ptr + at, mask=mask, other=0.0)
    opposite = tl.min((x == -y).to(tl.int32), axis=0) == 1
    tl.store(z_ptr + at, tl.where(opposite, 2.0 * x, x + 3.0 * y), mask=mask)

class OppositeTriton(Opposite):
    def forward(self, x, y):
        fits = x.shape == y.shape and x.dim() == 2 and x.dtype == y.dtype == torch.float32 and x.numel()
        if not fits or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            return super().forward(x, y)
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        opposite_kernel[(x.shape[0],)](x, y, z, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return z
"""


def _validated(validate: Any, module: str, name: str, kernel: str) -> tuple[str, list[str]]:
    verdict = validate(module, name, kernel)["verdict"]
    return verdict["status"], [one for one in verdict["limits"] if "comparison" in one or one.endswith(schema.UNSHOWN)]


def _slow(module: str) -> str:
    """The module on a machine that has other things to do: each call takes 25 ms more."""
    signature, _, body = module.partition("def forward(")[2].partition("\n")
    return "import time\n" + module.replace(
        f"def forward({signature}\n{body}", f"def forward({signature}\n        time.sleep(0.025)\n{body}"
    )


@pytest.mark.parametrize("machine", [str, _slow])
def test_the_search_finds_as_much_on_a_busy_machine(validate: Any, machine: Any) -> None:
    assert _validated(validate, machine(OPPOSITE), "Opposite", OPPOSITE_KERNEL) == ("ok", [])


@pytest.mark.parametrize("machine", [str, _slow])
def test_the_sides_that_show_are_looked_at_on_a_busy_machine(validate: Any, machine: Any) -> None:
    """Elements are on both sides, which give the same: without a look they would be taken to show."""
    module = OUT_OF_REACH.replace("torch.sigmoid(x)", "x").replace("y < 1.5, 2.0 * y, y - 7.0", "y < 0.5, y, y.clone()")
    status, limits = _validated(validate, machine(module), "Bent", elementwise("Bent", "x + 0.0"))
    assert status == "ok" and [one.partition(" at ")[0] for one in limits] == ["where y < 0.5", "where y >= 0.5"]


@pytest.mark.parametrize(("padding", "expected"), [("1.0", "wrong"), ("tl.where(i == 500, 0.5, 1.0)", "ok")])
def test_integers_get_the_constant_that_they_are_compared_with(validate: Any, padding: str, expected: str) -> None:
    module, kernel = of_tokens(padding, "torch.randint(0, 500, (4, 24))")
    assert _validated(validate, module, "Tokens", kernel) == (expected, [])


@pytest.mark.parametrize(
    ("padding", "expected"), [("1.0", "wrong"), ("tl.where((i == 500) | (i == 7), 0.5, 1.0)", "ok")]
)
def test_one_of_several_constants_is_tried(validate: Any, padding: str, expected: str) -> None:
    module, kernel = of_tokens(padding, "torch.randint(501, 1000, (4, 24))")
    module = module.replace("ids == self.padding", "torch.isin(ids, torch.tensor([7, 500]))")
    assert _validated(validate, module, "Tokens", kernel) == (expected, [])


@pytest.mark.parametrize(("ignored", "expected"), [("found", "wrong"), ("0.0", "ok")])
def test_a_label_beyond_the_examples_is_tried_where_eager_takes_it(validate: Any, ignored: str, expected: str) -> None:
    assert _validated(validate, *_named(of_labels(ignored), "Labels")) == (expected, [])


def test_an_index_beyond_the_table_is_not_given_to_the_candidate(validate: Any) -> None:
    module, kernel = of_tokens("1.0", "torch.randint(0, 500, (4, 24))")
    module = module.replace("self.padding = 500", "self.padding = 1000")
    kernel = kernel.replace("self.padding != 500", "self.padding != 1000")
    status, limits = _validated(validate, module, "Tokens", kernel)
    assert (status, limits) == ("ok", ["where ids == self.padding at module.py:10 (no input shows it)"])


@pytest.mark.parametrize(
    ("near", "expected"), [("others < length", "wrong"), ("(others > at - 100) & (others < at + 100)", "ok")]
)
def test_longer_inputs_show_both_sides_of_a_window(validate: Any, near: str, expected: str) -> None:
    assert _validated(validate, *_named(windowed(near), "Windowed")) == (expected, [])


def _signed(others: str, negative: str, x: str = "x") -> tuple[str, str, str]:
    """``negative``: what the kernel gives for a scale that is not positive."""
    kernel = replaced(
        elementwise("Signed", f"tl.where(s > 0, x * s, {negative})"), "x_ptr, y_ptr", "x_ptr, s_ptr, y_ptr"
    )
    kernel = replaced(kernel, "    tl.store", "    s = tl.load(s_ptr)\n    tl.store")
    kernel = replaced(kernel, "](x, y", "](x, self.scale, y")
    kernel = replaced(
        kernel, "(torch.is_grad_enabled() and x.requires_grad)", "torch.is_grad_enabled() or self.training"
    )
    kernel = replaced(kernel, "x = x.contiguous()", f"x = {x}.contiguous()")
    return SIGNED.format(others=others, x=x), "Signed", kernel


@pytest.mark.parametrize(("negative", "expected"), [("x + s", "wrong"), ("x - s", "ok")])
def test_buffers_are_negated(validate: Any, negative: str, expected: str) -> None:
    buffer = "self.register_buffer('scale', torch.tensor(0.5))"
    assert _validated(validate, *_signed(buffer, negative)) == (expected, [])


@pytest.mark.parametrize(("negative", "expected"), [("x + s", "wrong"), ("x - s", "ok")])
def test_parameters_are_negated_beside_running_statistics(validate: Any, negative: str, expected: str) -> None:
    norm = "self.norm, self.scale = nn.BatchNorm1d(40), nn.Parameter(torch.tensor(0.5))"
    assert _validated(validate, *_signed(norm, negative, "self.norm(x)")) == (expected, [])


def test_which_tensors_can_be_negated() -> None:
    module = torch.nn.ModuleDict({"norm": torch.nn.BatchNorm1d(3), "linear": torch.nn.Linear(2, 2).half()})
    module.register_buffer("scale", torch.ones(2))
    module.register_buffer("count", torch.tensor(3))
    module.register_buffer("lazy", torch.ones(2), persistent=False)
    assert weights.negatable(module) == (["norm.weight", "norm.bias", "linear.weight", "linear.bias"], ["scale"])


def _named(pair: tuple[str, str], name: str) -> tuple[str, str, str]:
    return pair[0], name, pair[1]
