"""torch.export is asked with fewer dynamic sizes where it fails with all of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import attributes
from kernel_lsp.synthesis.capture import Assigned, capture


class Pooled(nn.Module):
    """A view whose width depends on the pooled size: torch.export has to solve an equation, and cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)
        self.pool = nn.AvgPool2d(7)
        self.head = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.down(x))
        return self.head(x.view(x.size(0), -1))


def test_the_batch_stays_dynamic_where_the_other_sizes_cannot() -> None:
    exported = capture(Pooled(), (torch.randn(2, 3, 14, 14),))
    assert len(exported.range_constraints) == 1
    x = next(n for n in exported.graph.nodes if n.op == "placeholder" and n.name == "x").meta["val"]
    assert not isinstance(x.shape[0], int) and x.shape[2:] == (14, 14)


class Choosing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x


def test_what_depends_on_the_data_stays_an_error() -> None:
    with pytest.raises(Exception, match=r"(?i)data-dependent"):
        capture(Choosing(), (torch.randn(3, 4),))


class Remembering(nn.Module):
    """Changes what attributes hold; ``how``: which of them."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.seen = torch.zeros(3)
        self.each = [torch.zeros(3)]
        self.made: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "in place":
            self.seen.copy_(x)
        elif self.how == "assigned":
            self.seen = x + self.seen
        elif self.how == "made":
            self.made = x + (0 if self.made is None else self.made)
        elif self.how == "in a list":
            self.each[0] = x * 2
        elif self.how == "a view":
            self.seen = x[1:]
        return self.seen + 1


@pytest.mark.parametrize(
    ("how", "path", "read", "assigned"),
    [("in place", "seen", True, False), ("assigned", "seen", True, True), ("made", "made", True, True)],
)
def test_a_tensor_attribute_that_forward_changes_is_an_input_of_the_graph(how, path, read, assigned) -> None:
    module = Remembering(how)
    exported = capture(module, (torch.ones(3),))
    (kept,) = attributes.of(exported)
    assert (kept.path, kept.given, kept.read, kept.assigned) == (path, True, read, assigned)
    assert len(exported.graph_signature.user_inputs) == len(exported.graph_signature.user_outputs) == 1
    assert module.seen.tolist() == [0, 0, 0] and module.made is None and type(module) is Remembering


@pytest.mark.parametrize(("how", "attribute"), [("in a list", r"self\.each\[0\]"), ("a view", r"self\.seen")])
def test_an_attribute_that_a_kernel_could_not_keep_is_named(how, attribute) -> None:
    module = Remembering(how)
    with pytest.raises(Assigned, match=attribute):
        capture(module, (torch.ones(3),))
    assert module.seen.tolist() == [0, 0, 0]


class ThroughData(nn.Module):
    """Masks, and keeps a mean, through ``.data``, as code does that is older than torch.no_grad."""

    def __init__(self, clipped: bool = False) -> None:
        super().__init__()
        self.clipped = clipped
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if self.clipped:
            self.weight.data = self.weight.data.clamp(-1, 1)
        scores = x @ self.weight
        scores.data.masked_fill_(mask, 0.0)
        self.mean.data.mul_(0.5).add_(x.data.mean(0))
        return scores * 2


def test_what_is_changed_through_data_is_in_the_graph() -> None:
    module, x, mask = ThroughData().eval(), torch.randn(3, 4), torch.rand(3, 4) < 0.5
    exported = capture(module, (x, mask))
    assert list(exported.graph_signature.buffers_to_mutate.values()) == ["mean"]
    traced = exported.module()
    assert torch.equal(traced(x, mask), module(x, mask)) and module.mean.any()
    assert torch.equal(traced.get_buffer("mean"), module.mean)


def test_other_data_for_a_parameter_is_refused_by_its_name() -> None:
    with pytest.raises(Assigned, match=r"self\.weight"):
        capture(ThroughData(clipped=True).eval(), (torch.randn(3, 4), torch.rand(3, 4) < 0.5))


class Windowed(nn.Module):
    """Windows of 7 x 7 of a padded image, one linear layer, and back: sizes of the result are long expressions."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, height, width, channels = x.shape
        x = nn.functional.pad(x, (0, 0, 0, (7 - width % 7) % 7, 0, (7 - height % 7) % 7))
        padded = x.shape[1:3]
        x = x.view(batch, padded[0] // 7, 7, padded[1] // 7, 7, channels).permute(0, 1, 3, 2, 4, 5).contiguous()
        x = self.linear(x.view(-1, 49, channels)).view(-1, 7, 7, channels)
        x = x.view(-1, padded[0] // 7, padded[1] // 7, 7, 7, channels).permute(0, 1, 3, 2, 4, 5).contiguous()
        return x.view(-1, *padded, channels)[:, :height, :width].contiguous()


@pytest.mark.slow
def test_sizes_that_become_long_expressions_are_fixed() -> None:
    exported = capture(Windowed(), (torch.randn(2, 9, 12, 4),))
    x = next(n for n in exported.graph.nodes if n.op == "placeholder" and n.name == "x").meta["val"]
    assert not isinstance(x.shape[0], int) and x.shape[1:] == (9, 12, 4)


class Rounding(nn.Module):
    """A block that autocast is switched on in, or off."""

    def __init__(self, on: bool) -> None:
        super().__init__()
        self.on = on

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.on):
            return x @ x.t()


@pytest.mark.parametrize("on", [False, True])
def test_a_block_without_autocast_is_part_of_the_graph(on: bool) -> None:
    exported = capture(Rounding(on), (torch.randn(3, 4),))
    assert any(node.op == "get_attr" for node in exported.graph.nodes) == on


class Mapped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.vmap(lambda row: row.cumsum(0) * 2)(x)


def test_a_function_that_is_mapped_becomes_operators() -> None:
    called = [n.target for n in capture(Mapped(), (torch.randn(3, 4),)).graph.nodes if n.op == "call_function"]
    assert all(isinstance(target, torch._ops.OpOverload) for target in called)


class Keywords(nn.Module):
    def forward(self, x: torch.Tensor, **more: torch.Tensor | bool) -> torch.Tensor:
        shifted = x + more["shift"]
        return shifted if more["whole"] else shifted.relu()


def test_what_forward_takes_by_any_keyword_varies_like_other_arguments() -> None:
    exported = capture(Keywords(), (torch.randn(3, 4),), {"shift": torch.randn(4), "whole": False})
    x, shift, whole = (n.meta["val"] for n in exported.graph.nodes if n.op == "placeholder")
    assert not any(isinstance(size, int) for size in (*x.shape, *shift.shape)) and whole is False


class Blocks(nn.Module):
    """As many blocks of 64 as a parameter has."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.view(x.shape[0], x.shape[1] // 64, 64) * self.weight).sum(2)


def test_a_size_that_conditions_leave_no_choice_of_is_fixed() -> None:
    exported = capture(Blocks(), (torch.randn(3, 128),))
    x = next(n for n in exported.graph.nodes if n.op == "placeholder" and n.name == "x").meta["val"]
    assert x.shape[1] == 128 and x.shape[1].node.expr.is_Integer
    assert not x.shape[0].node.expr.is_Integer


class Pieces(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1] // 64, 64).sum(2)


class LongPieces(nn.Module):
    """Valid lengths are 1024 apart."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 1:].reshape(x.shape[0], -1, 1024).sum(1) + x[:, :1]


@pytest.mark.parametrize(("kind", "size"), [(Pieces, 128), (LongPieces, 2049)])
def test_a_size_of_which_there_are_others_varies(kind: type[nn.Module], size: int) -> None:
    exported = capture(kind(), (torch.randn(3, size),))
    x = next(n for n in exported.graph.nodes if n.op == "placeholder" and n.name == "x").meta["val"]
    assert not x.shape[1].node.expr.is_Integer


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, value=v)


def test_attention_takes_as_many_values_as_keys() -> None:
    q, k, v = torch.randn(2, 4, 8, 16), torch.randn(2, 4, 17, 16), torch.randn(2, 4, 17, 16)
    exported = capture(Attention(), (q, k, v))
    shapes = {n.name: n.meta["val"].shape for n in exported.graph.nodes if n.op == "placeholder"}
    assert not isinstance(shapes["k"][2], int)
    assert shapes["k"][2].node.expr == shapes["v"][2].node.expr != shapes["q"][2].node.expr


class Gridded(nn.Module):
    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.linspace(-1, 1, steps=x.shape[1], **self.how)


@pytest.mark.parametrize(("how", "varies"), [({}, True), ({"dtype": torch.float64}, False)], ids=str)
def test_a_size_that_linspace_takes_varies_where_the_numbers_are_float32(how: dict[str, Any], varies: bool) -> None:
    module = Gridded(**how)
    exported = capture(module, (torch.randn(3, 5),))
    assert len(exported.range_constraints) == (2 if varies else 1)  # the sizes that vary
    for size in (5, 4, 257) if varies else (5,):
        given = torch.randn(3, size)
        assert torch.allclose(exported.module()(given), module(given), atol=1e-6)
