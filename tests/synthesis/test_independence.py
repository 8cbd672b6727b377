"""What is called independent is: slices computed by themselves are the slices of the whole, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.synthesis import independence
from kernel_lsp.synthesis.capture import capture

# Sizes that no weight fixes and that differ, so that they can be told apart.
B, M, N = 6, 8, 10
E4M3 = torch.float8_e4m3fn


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


class Applied(nn.Module):
    """A function of tensors, with modules that it may use."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(parts)

    def forward(self, *args: Any) -> Any:
        return self.function(*self.parts, *args)


#: name → (function of the parts and the inputs, parts, inputs, the sizes that are independent)
CASES: dict[str, tuple[Callable[..., Any], list[nn.Module], list[Any], set[int]]] = {}


def case(name: str, function: Callable[..., Any], inputs: list[Any], sizes: set[int], *parts: nn.Module) -> None:
    CASES[name] = (function, list(parts), inputs, sizes)


# Elementwise and broadcasting.
case("gelu", lambda x: F.gelu(x) * 2 + 1, [r(B, M, N)], {B, M, N})
case("add of two", lambda x, y: x + y, [r(B, M), r(B, M)], {B, M})
case("broadcast from the right", lambda x, y: x * y, [r(B, M), r(M)], {B, M})
case("broadcast against one", lambda x, y: torch.where(x > 0, x, y), [r(B, M), r(B, 1)], {B, M})
case("clamp and dropout in eval", lambda d, x: d(x.clamp(-1, 1)), [r(B, M)], {B, M}, nn.Dropout(0.5))
case("prelu", lambda p, x: p(x), [r(B, 3, M)], {B, M}, nn.PReLU(3))
case("a constant mask", lambda x: x.masked_fill(torch.ones(1, 1, dtype=torch.bool), 2.0), [r(B, M)], {B, M})
case("zeros of the same size", lambda x: x + torch.zeros(x.shape[0], 1, dtype=x.dtype), [r(B, M)], {B, M})
case("positions", lambda x: x + torch.arange(x.shape[0])[:, None], [r(B, M)], {M})
case("divided by the size", lambda x: x / x.shape[0], [r(B, M)], {M})
case("an expanded token", lambda x: torch.cat([torch.ones(1, 1, 5).double().expand(x.shape[0], -1, -1), x], 1), [r(B, M, 5)], {B})  # fmt: skip
# Reductions and what goes along a dimension.
case("softmax", lambda x: x.softmax(-1), [r(B, M)], {B})
case("softmax over the batch", lambda x: x.softmax(0), [r(B, M)], {M})
case("sum", lambda x: x.sum(1), [r(B, M, N)], {B, N})
case("sum with keepdim", lambda x: x - x.mean((0, 2), keepdim=True), [r(B, M, N)], {M})
case("sum over everything", lambda x: x.sum(), [r(B, M)], set())
case("norm over everything", lambda x: x / x.norm(), [r(B, M)], set())
case("normalize", lambda x: F.normalize(x, dim=1), [r(B, M)], {B})
case("argmax", lambda x: x.argmax(1), [r(B, M, N)], {B, N})
case("max with indices", lambda x: x.max(dim=1), [r(B, M, N)], {B, N})
case("the greater of two", lambda x, y: torch.max(x, y) - torch.min(x, y), [r(B, M), r(M)], {B, M})
case("logsumexp", lambda x: torch.logsumexp(x, 2), [r(B, M, N)], {B, M})
case("var", lambda x: x.var(dim=-1, keepdim=True), [r(B, M)], {B})
case("cumsum", lambda x: x.cumsum(1), [r(B, M)], {B})
case("cumsum over the batch", lambda x: x.cumsum(0), [r(B, M)], {M})
case("reverse cumsum", lambda x: x.flip(1).cumsum(1).flip(1), [r(B, M)], {B})
case("flip and roll", lambda x: x.flip(0).roll(1, 1), [r(B, M, N)], {N})
case("topk", lambda x: x.topk(3, dim=1).values, [r(B, M)], {B})
case("tril", lambda x: x.tril(), [r(B, M, N)], {B})
case("cosine similarity", lambda x, y: F.cosine_similarity(x, y, dim=1), [r(B, M), r(B, M)], {B})
case("a mean loss", lambda x, y: F.mse_loss(x, y), [r(B, M), r(B, M)], set())
case("a loss by element", lambda x, y: F.mse_loss(x, y, reduction="none"), [r(B, M), r(B, M)], {B, M})
# Views.
case("batch merged and back", lambda lin, x: lin(x.reshape(-1, 5)).view(x.shape[0], -1, 3), [r(B, M, 5)], {B, M}, nn.Linear(5, 3))  # fmt: skip
case("merged in the result", lambda x: x.reshape(-1, 5) * 2, [r(B, M, 5)], set())
case("flatten", lambda x: x.flatten(1), [r(B, M, N)], {B})
case("heads", lambda x: x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2), [r(B, N, 8)], {B, N})
case("reshape of a transposed one", lambda x: x.transpose(1, 2).reshape(x.shape[0], -1), [r(B, M, N)], {B})
case("cut through", lambda x: x.view(2, -1), [r(B, 4)], set())
case("permute", lambda x: x.permute(2, 0, 1).unsqueeze(1), [r(B, M, N)], {B, M, N})
case("t and movedim", lambda x: x.t().movedim(0, 1), [r(B, M)], {B, M})
case("select", lambda x: x[:, 0], [r(B, M, N)], {B, N})
case("last of the batch", lambda x: x[-1], [r(B, M)], {M})
case("slice", lambda x: x[:, 1:3, ::2], [r(B, M, N)], {B})
case("split", lambda x: x.chunk(2, dim=1)[0] * x.chunk(2, dim=1)[1], [r(B, 8)], {B})
case("cat of two", lambda x, y: torch.cat([x, y], 1), [r(B, M), r(B, N)], {B})
case("cat behind it", lambda x, y: torch.cat([x, y], 0), [r(B, M), r(N, M)], {M})
case("stack", lambda x, y: torch.stack([x, y], 1), [r(B, M), r(B, M)], {B, M})
case("unbind", lambda x: torch.stack([t * 2 for t in x.unbind(1)], 0), [r(B, 3, M)], {B, M})
case("repeat", lambda x: x.repeat(1, 2), [r(B, M)], {B})
case("repeat of it", lambda x: x.repeat(2, 1), [r(B, M)], {M})
case("padding", lambda x: F.pad(x, (1, 2)), [r(B, M)], {B})
case("reflection", lambda x: F.pad(x, (1, 2), mode="reflect"), [r(B, 3, M)], {B, 3})
case("pixel shuffle", lambda x: F.pixel_shuffle(x, 2), [r(B, 8, M, N)], {B})
case("an index", lambda x: x[:, torch.tensor([2, 0, 1])], [r(B, 4, N)], {B, N})
case("two indices", lambda x: x[:, torch.tensor([2, 0]), torch.tensor([1, 1])], [r(B, 4, 4, N)], {B, N})
# Products.
case("linear", lambda lin, x: lin(x), [r(B, M, 5)], {B, M}, nn.Linear(5, 3))
case("matmul", torch.matmul, [r(B, 7), r(7, M)], {B, M})
case("bmm", torch.bmm, [r(B, M, 7), r(B, 7, N)], {B, M, N})
case("matmul with leading dimensions", torch.matmul, [r(B, 3, M, 7), r(3, 7, N)], {B, 3, M, N})
case("matrix times vector", torch.matmul, [r(B, M, 7), r(7)], {B, M})
case("vector times matrices", torch.matmul, [r(7), r(B, 7, N)], {B, N})
case("product of float8 with a scale for each row and column", lambda x, y: torch._scaled_mm(x.to(E4M3), y.to(E4M3).t(), x.abs().amax(1, keepdim=True).float(), y.abs().amax(1).float()[None], out_dtype=torch.float32), [r(B, 16), r(M, 16)], {B, M})  # fmt: skip
case("product of float8 with a scale of it all", lambda x, y: torch._scaled_mm(x.to(E4M3), y.to(E4M3).t(), x.abs().amax().float(), torch.ones(()), out_dtype=torch.float32), [r(B, 16), r(M, 16)], {M})  # fmt: skip
case("addmm", torch.addmm, [r(M), r(B, 7), r(7, M)], {B, M})
case("square", lambda x: x @ x, [r(M, M)], set())
case("gram", lambda x: x @ x.t(), [r(B, M)], set())
case("einsum", lambda x, y: torch.einsum("bik,bkj->bij", x, y), [r(B, M, 7), r(B, 7, N)], {B, M, N})
case("einsum that sums", lambda x: torch.einsum("bij->j", x), [r(B, M, N)], {N})
case("attention", F.scaled_dot_product_attention, [r(B, 2, M, 4), r(B, 2, N, 4), r(B, 2, N, 4)], {B, 2, M})
case("causal attention", lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), [r(B, 2, M, 4)], {B, 2})
case("masked attention", lambda x, m: F.scaled_dot_product_attention(x, x, x, attn_mask=m), [r(B, 2, M, 4), r(B, 1, M, M)], {B, 2})  # fmt: skip
# Layers.
case("convolution", lambda c, x: c(x), [r(B, 3, M, N)], {B}, nn.Conv2d(3, 4, 3))
case("depthwise", lambda c, x: c(x), [r(B, 4, M, N)], {B}, nn.Conv2d(4, 4, 3, groups=4))
case("transposed", lambda c, x: c(x), [r(B, 3, M)], {B}, nn.ConvTranspose1d(3, 4, 3))
case("pooling", lambda x: F.max_pool2d(F.avg_pool2d(x, 2), 2), [r(B, 3, 12, 16)], {B, 3})
case("pooling of channels too", lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), [r(B, M, 12, 16)], {B, M})
case("pooling with indices", lambda x: F.max_pool2d(x, 2, return_indices=True), [r(B, M, 12, 16)], {B, M})
case("batch norm", lambda n, x: n(x), [r(B, 3, M)], {B, M}, nn.BatchNorm1d(3))
case("batch norm without statistics", lambda n, x: n(x), [r(B, 3, M)], set(), nn.BatchNorm1d(3, track_running_stats=False))  # fmt: skip
case("batch norm in place", lambda n, x: F.relu(n(x), inplace=True), [r(B, 3, M)], {B, M}, nn.BatchNorm1d(3))
case("group norm in place", lambda n, x: F.relu(n(x), inplace=True), [r(B, 4, M)], {B}, nn.GroupNorm(2, 4))
case("layer norm in place", lambda n, x: F.relu(n(x), inplace=True), [r(B, M, 5)], {B, M}, nn.LayerNorm(5))
case("group norm", lambda n, x: n(x), [r(B, 4, M)], {B}, nn.GroupNorm(2, 4))
case("instance norm", lambda n, x: n(x), [r(B, 4, M, N)], {B}, nn.InstanceNorm2d(4))
case("layer norm", lambda n, x: n(x), [r(B, M, 5)], {B, M}, nn.LayerNorm(5))
case("embedding", lambda e, i: e(i), [torch.randint(0, 9, (B, M))], {B, M}, nn.Embedding(9, 5))
case("lstm", lambda lstm, x: lstm(x)[0], [r(B, M, 5)], {B}, nn.LSTM(5, 4, batch_first=True))
case("gru with its state", lambda gru, x, h: gru(x, h), [r(M, B, 5), r(1, B, 4)], {B}, nn.GRU(5, 4))
case("multi-head attention", lambda a, x: a(x, x, x)[0], [r(B, M, 8)], {B}, nn.MultiheadAttention(8, 2, batch_first=True))  # fmt: skip
case("interpolation", lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), [r(B, 3, M, N)], {B, 3})
case("random numbers", lambda x: x + torch.randn_like(x), [r(B, M)], set())
case("in place", lambda x: F.relu(x + 1, inplace=True), [r(B, M)], {B, M})
case("an output without it", lambda x: (x + 1, torch.ones(3)), [r(B, M)], set())
case("two outputs", lambda x: (x + 1, x.sum(1)), [r(B, M)], {B})
case("a way of its own for small ones", lambda x: x + 1 if x.shape[0] > 4 else x, [r(B, M)], {M})


def captured(name: str) -> tuple[nn.Module, list[Any], Any]:
    torch.manual_seed(0)
    function, parts, inputs, _ = CASES[name]
    module = Applied(function, *parts).double().eval()
    return module, inputs, capture(module, tuple(inputs))


# make test has every second one: most families of operators have several cases.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if i % 2 else name for i, name in enumerate(CASES)]
)
def test_the_dimensions_found(name: str) -> None:
    module, inputs, exported = captured(name)
    found = independence.find(exported, most=9)
    reasons = independence.why_not(exported)
    assert {one.size for one in found} == CASES[name][3], reasons
    for one in found:
        check(module, inputs, one)


def check(module: nn.Module, inputs: list[Any], one: Any) -> None:
    with torch.no_grad():
        whole = tuple_of(module(*inputs))
        for a, b in [(a, b) for a, b in ((0, 2), (1, 3), (one.size // 2 - 1, one.size)) if b <= one.size]:
            part = tuple_of(module(*(sliced(x, dim, a, b) for x, dim in zip(inputs, one.inputs, strict=True))))
            for got, all_of_it, dim in zip(part, whole, one.outputs, strict=True):
                rounding = 1e-10 if got.dtype == torch.float64 else 1e-5  # products of float8 give float32
                torch.testing.assert_close(got, sliced(all_of_it, dim, a, b), rtol=rounding, atol=rounding)


def sliced(tensor: torch.Tensor, dim: int | None, a: int, b: int) -> torch.Tensor:
    return tensor if dim is None else tensor.narrow(dim, a, b - a)


def tuple_of(outputs: Any) -> tuple[torch.Tensor, ...]:
    return (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)


def test_batch_norm_in_training_mixes_the_batch() -> None:
    exported = capture(nn.BatchNorm1d(3), (torch.randn(B, 3),), training=True)
    assert independence.find(exported) == []


def test_the_largest_come_first() -> None:
    exported = capture(nn.GELU(), (torch.randn(4, 16, 8, 32),))
    assert [one.size for one in independence.find(exported)] == [32, 16, 8]
