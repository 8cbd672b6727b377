"""Small modules, one or two operators each, that the synthesizer must write and get right at more than one size.

``CASES`` maps a name to a ``Case``; ``inputs(step)`` gives the arguments at another size for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.schema import Candidate
from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture


@dataclass
class Case:
    kind: type[nn.Module]
    inputs: Callable[[int], list[Any]]
    init: tuple[Any, ...] = ()
    kept: int = 0  # operators expected to stay torch calls
    tolerance: float = 2e-5
    kernels: int | None = None  # how many Triton kernels it should take
    halves: bool = False  # products are made of half precision ones, whether that pays or not


CASES: dict[str, Case] = {}


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def case(name: str, forward: Callable[..., Any], inputs: Callable[[int], list[Any]], **more: Any) -> None:
    """A module without state: ``forward`` takes self first."""
    kind = type(_camel(name), (nn.Module,), {"forward": forward, "__module__": __name__})
    globals()[kind.__name__] = kind
    CASES[name] = Case(kind, inputs, **more)


def module(
    name: str, kind: type[nn.Module], init: tuple[Any, ...], inputs: Callable[[int], list[Any]], **more: Any
) -> None:
    """An existing layer under a name of its own, so that a kernel file can import it from here."""
    own = type(_camel(name), (kind,), {"__module__": __name__})
    globals()[own.__name__] = own
    CASES[name] = Case(own, inputs, init=init, **more)


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def _first(x: torch.Tensor, number: float) -> torch.Tensor:
    x.view(-1)[0] = number
    return x


def proposed(case: Case, module: nn.Module, arguments: list[Any], origin: str) -> list[Candidate]:
    """The candidates of a case."""
    exported = capture(module, tuple(arguments))
    names = {"class_name": type(module).__name__, "import_from": origin}
    if not case.halves:
        return synthesize(module, exported, **names)
    pay = {"planes_pay": lambda *_: True, "float16_pays": lambda *_: True}
    with mock.patch.multiple(stages, **pay):
        return synthesize(module, exported, gpu="H100", **names)


def made(case: Case, module: nn.Module, arguments: list[Any], origin: str, variant: str = "") -> Candidate:
    """The candidate of a case that leaves least to torch, and comes first; of those that have ``variant`` in their label."""
    found = [one for one in proposed(case, module, arguments, origin) if variant in one.variant]
    return min(found, key=lambda one: sum(one.kept.values()))


def cut_and_whole(product: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.relu(product[:, :5]), product.sum(1)


def positive(*shape: int) -> torch.Tensor:
    return torch.rand(*shape) * 0.9 + 0.05


def _with_infinities(rows: int, columns: int) -> list[torch.Tensor]:
    """Rows whose difference begins with -inf; later rows reach large numbers, then inf, then NaN (inf - inf)."""
    x, y = torch.randn(rows, columns), torch.zeros(rows, columns)
    x[:, :3] = float("-inf")
    x[1:, 4] = 200.0
    x[2:, 5:7] = float("inf")
    x[2:, 8] = float("-inf")
    x[3:, 9] = y[3:, 9] = float("inf")
    return [x, y]


def unary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, x: function(x)


def over(method: str, dims: Any, **options: Any) -> Callable[..., Any]:
    return lambda self, x: getattr(x, method)(dims, **options)


# Elementwise: functions, broadcasting, views.
for _name in [
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "tanh",
    "erf",
    "abs",
    "floor",
    "ceil",
    "relu",
    "sin",
    "cos",
    "log1p",
    "expm1",
    "reciprocal",
    "square",
    "neg",
]:
    case(f"one_{_name}", unary(getattr(torch, _name)), lambda n: [positive(7 + n, 33 - 4 * n)])
for _name in [
    "silu",
    "gelu",
    "mish",
    "softplus",
    "elu",
    "selu",
    "hardswish",
    "hardsigmoid",
    "leaky_relu",
    "relu6",
    "logsigmoid",
    "hardtanh",
]:
    case(f"act_{_name}", unary(getattr(F, _name)), lambda n: [r(5, 40 + 3 * n) * 3])
CASES["act_logsigmoid"].tolerance = 5e-5
case("gelu_by_tanh", lambda self, x: F.gelu(x, approximate="tanh"), lambda n: [r(5, 40 + n)])
case("broadcast_row", lambda self, x, y: x * y + 1.0, lambda n: [r(4 + n, 9, 17), r(17)])
case("broadcast_col", lambda self, x, y: x / (y.abs() + 1.0), lambda n: [r(4, 9 + n, 17), r(4, 9 + n, 1)])
case("broadcast_outer", lambda self, x, y: x[:, None] - y[None, :], lambda n: [r(13 + n), r(21)])
case("transposed_sum", lambda self, x, y: x.transpose(0, 1) + y, lambda n: [r(33 + n, 47), r(47, 33 + n)], kernels=1)
case("permuted", lambda self, x: torch.relu(x.permute(0, 2, 3, 1)), lambda n: [r(2, 5, 6 + n, 7)])
case(
    "merge_heads",
    lambda self, x: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1) * 2.0,
    lambda n: [r(2, 3, 6 + n, 8)],
)
case("sliced", lambda self, x: x[:, 2:-3] * x[:, 5:], lambda n: [r(6, 31 + n)])
case("every_other", lambda self, x: x[..., ::2] * x[..., 1::2], lambda n: [r(6 + n, 32)])
case("chunked_gate", lambda self, x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], lambda n: [r(5 + n, 64)])
case(
    "concatenated",
    lambda self, x, y: torch.cat([x, -y, x * y[:, : x.shape[1]]], 1),
    lambda n: [r(4 + n, 10), r(4 + n, 13)],
)
case("stacked", lambda self, x, y: torch.stack([x, y], -1), lambda n: [r(4 + n, 10), r(4 + n, 10)])
case("flipped", lambda self, x: x.flip(-1) + x, lambda n: [r(4, 19 + n)])
case(
    "where_mask", lambda self, x, m: torch.where(m, x, torch.zeros_like(x)), lambda n: [r(4, 19 + n), r(4, 19 + n) > 0]
)
case("clamped", lambda self, x: x.clamp(-0.5, 0.7), lambda n: [r(4, 19 + n)])
case("integer_add", lambda self, x, y: x + 2 * y, lambda n: [torch.arange(30 + n), torch.arange(30 + n)])
case("integer_to_float", lambda self, x: x.float() * 0.5, lambda n: [torch.arange(30 + n)])
case("compare", lambda self, x, y: (x > y) & (x < 1.0), lambda n: [r(4, 19 + n), r(4, 19 + n)])
case("power", lambda self, x: x**3 + x**2 + x**0.5 + x**-1, lambda n: [positive(4, 19 + n)])
case("general_power", lambda self, x: x**2.3, lambda n: [positive(4, 19 + n)])
case("scalar_tensor", lambda self, x, s: x * s, lambda n: [r(4, 19 + n), torch.tensor(1.7)])
case("causal", lambda self, x: torch.tril(x), lambda n: [r(3, 20 + n, 20 + n)])
case(
    "repeated_cut",  # the export divides by a quotient, which small sizes make 0
    lambda self, x: x.unflatten(1, (-1, 4)).flatten(0, 1) * 2.0,
    lambda n: [r(2, 8 + 4 * n, 6)],
    kernels=1,
)
case("one_position", lambda self, x: x * torch.arange(3, 9, device=x.device)[2], lambda n: [r(3, 20 + n)])
case("positions", lambda self, x: x + torch.arange(x.shape[-1], device=x.device), lambda n: [r(3, 20 + n)])
case(
    "half_chain",
    lambda self, x, y: torch.sigmoid(x) * y,
    lambda n: [r(5, 33 + n).half(), r(5, 33 + n).half()],
    tolerance=2e-3,
)
case(
    "bfloat_chain",
    lambda self, x, y: torch.tanh(x) * y,
    lambda n: [r(5, 33 + n).bfloat16(), r(5, 33 + n).bfloat16()],
    tolerance=1e-2,
)
case("up_and_down", lambda self, x: (x.float() * 2.0).to(x.dtype), lambda n: [r(5, 33 + n).half()], tolerance=2e-3)
case("two_outputs", lambda self, x, y: (x + y, x * y), lambda n: [r(5, 33 + n), r(5, 33 + n)], kernels=1)
case("dictionary", lambda self, x: {"sum": x + 1, "product": x * 2}, lambda n: [r(5, 33 + n)], kernels=1)
case(
    "nested_outputs",
    lambda self, x, y: {"both": (x + y, [x * y]), "alone": (x - y,)},
    lambda n: [r(5, 33 + n), r(5, 33 + n)],
    kernels=1,
)
case("list_argument", lambda self, xs: xs[0] + xs[1], lambda n: [[r(5, 33 + n), r(5, 33 + n)]])

# Margins, movement, repetition, windows.
case("zero_padded", lambda self, x: F.pad(x, (1, 2, 0, 1)) * 2.0, lambda n: [r(3, 5 + n, 17)], kernels=1)
case(
    "padded_by_a_number",
    lambda self, x: torch.exp(F.pad(x * 2.0, (3, 0), value=0.5)),
    lambda n: [r(4, 9 + n)],
    kernels=1,
)
case("padded_and_cropped", lambda self, x: F.pad(x, (-2, 1, 1, -1)) + 1.0, lambda n: [r(2, 6 + n, 9)], kernels=1)
case(
    "padded_integers",
    lambda self, x: F.pad(x, (1, 1), value=7) * 2,
    lambda n: [torch.arange(12 + n).view(2, -1)] if n % 2 == 0 else [torch.arange(12).view(3, 4)],
    kernels=1,
)
case(
    "padded_mask",
    lambda self, x, m: torch.where(F.pad(m, (1, 1), value=True), x, 0.0),
    lambda n: [r(3, 12 + n), r(3, 10 + n) > 0],
    kernels=1,
)
case("padded_half", lambda self, x: F.pad(x, (1, 1)) * 2.0, lambda n: [r(3, 12 + n).half()], kernels=1, tolerance=2e-3)
case("padded_mean", lambda self, x: F.pad(x, (2, 1), value=1.0).mean(-1), lambda n: [r(5, 18 + n)], kernels=1)
case(
    "padded_softmax",
    lambda self, x: torch.softmax(F.pad(x + 1.0, (1, 2), value=-1.0), -1),
    lambda n: [r(5, 18 + n)],
    kernels=1,
)
case(
    "padded_twice", lambda self, x: F.pad(F.pad(x, (1, 1)) + 1.0, (1, 1), value=2.0), lambda n: [r(3, 8 + n)], kernels=1
)
case("padded_after_a_sum", lambda self, x: F.pad(x.sum(-1), (1, 1)), lambda n: [r(6 + n, 40)])
case(
    "reflected", lambda self, x: F.pad(x, (2, 1, 1, 3), mode="reflect") * 2.0, lambda n: [r(2, 3, 6 + n, 7)], kernels=1
)
case(
    "replicated",
    lambda self, x: F.pad(x, (2, 0, 1, 3), mode="replicate") * 2.0,
    lambda n: [r(2, 3, 6 + n, 7)],
    kernels=1,
)
case("circular", lambda self, x: F.pad(x, (2, 1), mode="circular") * 2.0, lambda n: [r(2, 3, 6 + n)], kernels=1)
case("rolled", lambda self, x: x - x.roll(1, -1), lambda n: [r(4, 19 + n)], kernels=1)
case("rolled_back", lambda self, x: torch.roll(x, (-2, 5), (0, 1)) * 2.0, lambda n: [r(4 + n, 9)], kernels=1)
case("rolled_through", lambda self, x: torch.roll(x * 2.0, 3), lambda n: [r(4 + n, 9)], kernels=1)
case("rolled_mean", lambda self, x: (x * x.roll(2, -1)).mean(-1), lambda n: [r(6, 33 + n)], kernels=1)
case(
    "shifted_windows",
    lambda self, x: (
        x.roll((-2, -2), (1, 2)).view(x.shape[0], 2, 4, 3, 4, x.shape[-1]).permute(0, 1, 3, 2, 4, 5).softmax(-1)
    ),
    lambda n: [r(2, 8, 12, 6 + n)],
    kernels=1,
)
case("repeated", lambda self, x: x.repeat(2, 1, 3) + 1.0, lambda n: [r(4 + n, 9)], kernels=1)
case("tiled", lambda self, x: torch.tile(x, (3,)) * 2.0, lambda n: [r(4, 9 + n)], kernels=1)
case("repeated_elements", lambda self, x: x.repeat_interleave(3, 1) * 2.0, lambda n: [r(4, 5 + n, 6)], kernels=1)
case("repeated_flat", lambda self, x: torch.repeat_interleave(x + 1.0, 2), lambda n: [r(4, 5 + n)], kernels=1)
case("windows_mean", lambda self, x: x.unfold(-1, 4, 2).mean(-1), lambda n: [r(4, 21 + n)], kernels=1)
case("windows", lambda self, x: x.unfold(1, 3, 1) * 2.0, lambda n: [r(4, 11 + n, 5)], kernels=1)
case("on_the_diagonal", lambda self, x: x.diagonal(1, -2, -1) * 2.0, lambda n: [r(3, 8 + n, 9)], kernels=1)
case("below_the_diagonal", lambda self, x: torch.diagonal(x, -2).sum(-1), lambda n: [r(12, 9, 5 + n)])
case(
    "row_replaced",
    lambda self, x, y: torch.select_scatter(x, y, 1, 2) * 2.0,
    lambda n: [r(4, 5 + n, 6), r(4, 6)],
    kernels=1,
)
case(
    "part_replaced",
    lambda self, x, y: torch.slice_scatter(x, y, 1, 1, 4) * 2.0,
    lambda n: [r(4, 5 + n), r(4, 3)],
    kernels=1,
)
case("dimension_moved", lambda self, x: x.movedim(1, -1) * 2.0, lambda n: [r(4, 5 + n, 6)], kernels=1)
case(
    "dimensions_moved",
    lambda self, x: torch.movedim(x, (0, 1), (2, 0)).swapaxes(0, 1) * 2.0,
    lambda n: [r(4, 5 + n, 6)],
    kernels=1,
)
case("turned", lambda self, x: torch.rot90(x, 1, (1, 2)) + x.flipud(), lambda n: [r(4, 5 + n, 5 + n)])
case("pixels_shuffled", lambda self, x: F.pixel_shuffle(x, 2) * 2.0, lambda n: [r(2, 8, 3 + n, 5)], kernels=1)
case("pixels_unshuffled", lambda self, x: F.pixel_unshuffle(x + 1.0, 2), lambda n: [r(2, 3, 4 + 2 * n, 6)], kernels=1)
case("channels_shuffled", lambda self, x: F.channel_shuffle(x, 2) * 2.0, lambda n: [r(2, 6, 4 + n, 3)], kernels=1)
case("reshaped_across", lambda self, x, y: torch.exp((x + y).reshape(14, -1)), lambda n: [r(6, 35), r(35)], kernels=1)
case("reshaped_across_mean", lambda self, x: (x * 2.0).reshape(14, -1).mean(-1), lambda n: [r(6, 35)], kernels=1)
case(
    "product_of_padded", lambda self, a, b: F.pad(a, (0, 0, 1, 2)) @ b, lambda n: [r(13 + n, 20), r(20, 17)], kernels=1
)
case(
    "product_of_padded_sides",  # K is no multiple of a block, and both sides hold something beyond it
    lambda self, a, b: F.pad(a + 1.0, (2, 1), value=3.0) @ (b + 1.0),
    lambda n: [r(13, 18 + n), r(21 + n, 17)],
    kernels=1,
)

# Reductions.
for _dim in (0, 1, 2, (0, 2), (1, 2), (0, 1, 2)):
    _tag = "".join(map(str, _dim)) if isinstance(_dim, tuple) else str(_dim)
    case(f"sum_{_tag}", over("sum", _dim), lambda n: [r(6, 10 + n, 14 + n)])
    case(f"mean_{_tag}", over("mean", _dim, keepdim=True), lambda n: [r(6, 10 + n, 14 + n)])
    case(f"amax_{_tag}", over("amax", _dim), lambda n: [r(6, 10 + n, 14 + n)])
    case(f"var_{_tag}", over("var", _dim), lambda n: [r(6, 10 + n, 14 + n)])
case("sum_all", lambda self, x: x.sum(), lambda n: [r(6, 10 + n)])
case("argmax_last", lambda self, x: x.argmax(-1), lambda n: [r(6 + n, 37)])
case("argmin_first", lambda self, x: x.argmin(0), lambda n: [r(26 + n, 37)])
case("argmax_long", lambda self, x: x.argmax(-1), lambda n: [r(3, 40000 + n)])
case("sum_integers", lambda self, x: x.sum(-1), lambda n: [torch.randint(-9, 9, (5, 40 + n))])
case("max_integers", lambda self, x: x.amax(-1), lambda n: [torch.randint(-90, -9, (5, 40 + n))])
case("any_row", lambda self, x: (x > 2.0).any(-1), lambda n: [r(6, 40 + n)])
case("norm_2", lambda self, x: torch.linalg.vector_norm(x, dim=-1), lambda n: [r(6, 40 + n)])
case("norm_1", lambda self, x: x.norm(p=1, dim=1), lambda n: [r(6, 40 + n)])
case("norm_inf", lambda self, x: torch.linalg.vector_norm(x, ord=float("inf"), dim=0), lambda n: [r(60, 40 + n)])
case("frobenius", lambda self, x: x / torch.norm(x), lambda n: [r(6, 40 + n)])
case("unit_length", lambda self, x: F.normalize(x, dim=-1), lambda n: [r(6, 40 + n)], kept=0)
case("logsumexp", lambda self, x: x.logsumexp(-1), lambda n: [r(6, 40 + n) * 5])
case("std_of_sum", lambda self, x, y: (x + y).std(-1), lambda n: [r(6, 40 + n), r(6, 40 + n)], kernels=1)
case("long_row_sum", lambda self, x: x.sum(-1), lambda n: [r(2, 70000 + n)], tolerance=1e-4)
case("long_softmax", lambda self, x: torch.softmax(x, -1), lambda n: [r(2, 40000 + n)])
case("column_softmax", lambda self, x: torch.softmax(x, 1), lambda n: [r(2, 200 + n, 17)])
case(
    "loss_like_mean",
    lambda self, x, y: ((x - y) ** 2).mean(),
    lambda n: [r(300 + n, 230), r(300 + n, 230)],
    tolerance=1e-4,
)
case("tall_column_sum", lambda self, x: x.sum(0), lambda n: [r(33000 + n, 5)], tolerance=1e-4)
case("row_and_total", lambda self, x: x.mean(-1) - x.mean(), lambda n: [r(6, 40 + n)])
case("matrix_column", lambda self, a, b: torch.relu(a @ b), lambda n: [r(20 + n, 50), r(50, 1)])
case("least_of_a_constant", lambda self, x: torch.min(x, torch.tensor(0.5)) + 1, lambda n: [r(20 + n, 50)])
case(
    "constants_in_forward",
    lambda self, x: torch.clamp(x, max=torch.log(torch.tensor(1.5, device=x.device))) * torch.tensor(2.0),
    lambda n: [r(20 + n, 50)],
)
case("matrix_vector", lambda self, a, v: a @ v, lambda n: [r(20 + n, 50), r(50)])

# Softmax, norms, losses.
case("softmax_last", lambda self, x: torch.softmax(x * 3, -1), lambda n: [r(3, 5, 65 + n)], kernels=1)
case("log_softmax_last", lambda self, x: F.log_softmax(x, -1), lambda n: [r(3, 5, 65 + n)], kernels=1)
case("many_short_rows", lambda self, x: torch.softmax(x, -1), lambda n: [r(300 + n, 20)], kernels=1)
module("layer_norm", nn.LayerNorm, (48,), lambda n: [r(4 + n, 48)], kernels=1)
module("layer_norm_two_dims", nn.LayerNorm, ((6, 8),), lambda n: [r(4 + n, 6, 8)], kernels=1)
module("rms_norm", nn.RMSNorm, (48,), lambda n: [r(4 + n, 48)], kernels=1)
module("group_norm", nn.GroupNorm, (3, 12), lambda n: [r(2, 12, 5 + n, 6)], kernels=1)
module("instance_norm", nn.InstanceNorm2d, (12, 1e-5, 0.1, True), lambda n: [r(2, 12, 5 + n, 6)], kernels=1)
module("batch_norm_eval", nn.BatchNorm2d, (12,), lambda n: [r(3, 12, 5 + n, 6)], kernels=1)
case(
    "cross_entropy",
    lambda self, x, t: F.cross_entropy(x, t),
    lambda n: [r(9 + n, 30), torch.randint(0, 30, (9 + n,))],
    kernels=2,
)
case(
    "cross_entropy_maps",
    lambda self, x, t: F.cross_entropy(x, t),
    lambda n: [r(2, 7, 4 + n, 5), torch.randint(0, 7, (2, 4 + n, 5))],
)
case(
    "cross_entropy_soft",
    lambda self, x, t: F.cross_entropy(x, t),
    lambda n: [r(9 + n, 30), torch.softmax(r(9 + n, 30), -1)],
)
case(
    "cross_entropy_each",
    lambda self, x, t: F.cross_entropy(x, t, reduction="none"),
    lambda n: [r(9 + n, 30), torch.randint(0, 30, (9 + n,))],
    kernels=1,
)
case(
    "nll",
    lambda self, x, t: F.nll_loss(F.log_softmax(x, 1), t),
    lambda n: [r(9 + n, 30), torch.randint(0, 30, (9 + n,))],
)
case("mse", lambda self, x, y: F.mse_loss(x, y), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case("l1", lambda self, x, y: F.l1_loss(x, y), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case("smooth_l1", lambda self, x, y: F.smooth_l1_loss(x, y), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case("huber", lambda self, x, y: F.huber_loss(x, y, delta=0.7), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case(
    "kl_div",
    lambda self, x, y: F.kl_div(F.log_softmax(x, -1), y, reduction="batchmean"),
    lambda n: [r(9 + n, 30), torch.softmax(r(9 + n, 30), -1)],
)
case("bce", lambda self, x, y: F.binary_cross_entropy(x, y), lambda n: [positive(9 + n, 30), positive(9 + n, 30)])
case(
    "bce_logits",
    lambda self, x, y: F.binary_cross_entropy_with_logits(x, y),
    lambda n: [r(9 + n, 30), positive(9 + n, 30)],
)
case(
    "hinge", lambda self, x, y: torch.clamp(1 - x * y, min=0).mean(), lambda n: [r(9 + n, 30), torch.sign(r(9 + n, 30))]
)
case("cosine", lambda self, x, y: F.cosine_similarity(x, y, dim=-1), lambda n: [r(9 + n, 30), r(9 + n, 30)])
case("embedding", lambda self, i, w: F.embedding(i, w) * 2.0, lambda n: [torch.randint(0, 11, (3, 5 + n)), r(11, 24)])
case("gathered", lambda self, x, i: x.gather(1, i), lambda n: [r(4 + n, 24), torch.randint(0, 24, (4 + n, 24))])

# Products.
case("mm", lambda self, a, b: a @ b, lambda n: [r(33 + n, 40), r(40, 50)], kernels=1)
case("mm_transposed", lambda self, a, b: a.t() @ b.t(), lambda n: [r(40, 33 + n), r(50, 40)], kernels=1)
case(
    "bmm_of_parts",  # the batch size is a sum
    lambda self, a, b: torch.bmm(a[1:], b[1:]),
    lambda n: [r(4 + n, 17, 20), r(4 + n, 20, 19)],
    kernels=1,
)
case("bmm", lambda self, a, b: torch.bmm(a, b), lambda n: [r(3, 17 + n, 20), r(3, 20, 19)], kernels=1)
case("batched_by_matrix", lambda self, a, b: a @ b, lambda n: [r(3, 17 + n, 20), r(20, 19)], kernels=1)
case("broadcast_batch", lambda self, a, b: a @ b, lambda n: [r(2, 3, 17 + n, 20), r(3, 20, 19)], kernels=1)
case("vector_matrix", lambda self, a, b: a @ b, lambda n: [r(20), r(20, 19 + n)])
case("scaled_prologue", lambda self, a, b: (a * 2.0 + 1.0) @ b, lambda n: [r(33 + n, 40), r(40, 50)], kernels=1)
case("two_prologues", lambda self, a, b: (a + 1.0) @ (b + 1.0), lambda n: [r(33 + n, 40), r(40, 50)], kernels=1)
case(
    "half_mm",
    lambda self, a, b: F.relu(a @ b),
    lambda n: [r(33 + n, 40).half(), r(40, 50).half()],
    kernels=1,
    tolerance=4e-3,
)
case(
    "bfloat_mm",
    lambda self, a, b: (a @ b).float(),
    lambda n: [r(33 + n, 40).bfloat16(), r(40, 50).bfloat16()],
    kernels=1,
    tolerance=3e-2,
)
case(
    "addmm",
    lambda self, c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2.0),
    lambda n: [r(50), r(33 + n, 40), r(40, 50)],
    kernels=1,
)
case(
    "product_then_softmax",
    lambda self, a, b: torch.softmax(a @ b * 0.1, -1),
    lambda n: [r(33 + n, 40), r(40, 50)],
    kernels=2,
)
case(
    "residual_epilogue",
    lambda self, a, b, c: F.gelu(a @ b) + c,
    lambda n: [r(33 + n, 40), r(40, 50), r(33 + n, 50)],
    kernels=1,
)
module("linear", nn.Linear, (40, 24), lambda n: [r(5, 7 + n, 40)], kernels=1)


class Mlp(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Linear(width, hidden, bias=False),
            nn.Linear(width, hidden, bias=False),
            nn.Linear(hidden, width, bias=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


CASES["gated_mlp"] = Case(Mlp, lambda n: [r(3, 7 + n, 32)], (32, 48), tolerance=1e-4)


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


CASES["self_attention"] = Case(SelfAttention, lambda n: [r(2, 9 + n, 32)], (32, 4), tolerance=1e-4)


class GroupedQueries(nn.Module):
    """Two query heads share a key-value head; [:] and a padding mask, as the attention of language models has them."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.kv_proj = nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shape = (*x.shape[:-1], -1, 8)
        q = self.q_proj(x).view(shape).transpose(1, 2)
        k, v = self.kv_proj(x).chunk(2, dim=-1)
        k, v = (
            t.view(shape).transpose(1, 2)[:, :, None, :, :].expand(-1, -1, 2, -1, -1).reshape(q.shape) for t in (k, v)
        )
        weights = F.softmax(q @ k.transpose(2, 3) * 8**-0.5 + mask, dim=-1, dtype=torch.float32).to(q.dtype)
        return (weights @ v).transpose(1, 2).contiguous().reshape(x.shape), weights


CASES["grouped_queries"] = Case(
    GroupedQueries, lambda n: [r(2, 5 + n, 32), torch.zeros(2, 1, 1, 5 + n).masked_fill(r(2, 1, 1, 5 + n) > 1, -3e38)]
)


class PositionBias(nn.Module):
    """A bias that the product's kernel adds, and that is a later result, too."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Embedding(64, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        position = torch.arange(x.shape[2], device=x.device)
        bias = self.bias((position[None, :] - position[:, None]).abs()).permute(2, 0, 1)[None]
        return x @ x.transpose(2, 3) + bias, bias


CASES["position_bias"] = Case(PositionBias, lambda n: [r(3, 2, 17 + n, 16)])


def einsum(name: str, equation: str, inputs: Callable[[int], list[Any]], **more: Any) -> None:
    case(f"einsum_{name}", lambda self, *tensors: torch.einsum(equation, *tensors), inputs, **more)


einsum("rows", "ik,jk->ij", lambda n: [r(17 + n, 20), r(19, 20)], kernels=1)
einsum("heads", "bhid,bhjd->bhij", lambda n: [r(2, 3, 5 + n, 16), r(2, 3, 6, 16)], kernels=1)
einsum("ellipsis", "...i,...i->...", lambda n: [r(2, 3 + n, 50), r(50)], kernels=1)
einsum("each_with_each", "i,j", lambda n: [r(7 + n), r(9)], kernels=1)
einsum("of_three", "bn,anm,bm->ba", lambda n: [r(4, 5), r(3, 5, 6), r(4, 6)])
einsum("position", "bhwc,hkc->bhwk", lambda n: [r(2, 3, 5 + n, 16), r(3, 6, 16)])
case("zeros_times", lambda self, x, w: x.new_zeros(4, 20) @ w + x, lambda n: [r(4, 9), r(20, 9)])
case("times_ones", lambda self, x: x @ torch.ones(20, 9, device=x.device) * 2, lambda n: [r(3, 5 + n, 20)])


def in_place(self: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * 2
    before = y.sum(-1, keepdim=True)
    y += before
    y.clamp_(max=1.5)
    return y, before


case("in_place", in_place, lambda n: [r(3, 7 + n, 16)])


class Partly(nn.Module):
    """A convolution with what follows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x)) * 2.0 + 1.0


CASES["convolution_relu"] = Case(Partly, lambda n: [r(2, 3, 8 + n, 9)], kernels=1)

# Convolutions: windows of the input times the weight, with what follows.
module("conv1d_strided", nn.Conv1d, (4, 6, 3, 2, 0, 2), lambda n: [r(2, 4, 20 + n)], kernels=1)
module("conv2d", nn.Conv2d, (5, 7, 3), lambda n: [r(2, 5, 13 + n, 11)], kernels=1)
module("conv2d_same", nn.Conv2d, (4, 5, 3, 1, "same", 2), lambda n: [r(2, 4, 9, 8 + n)], kernels=1)
module("conv2d_one", nn.Conv2d, (20, 9, 1, 1, 0, 1, 1, False), lambda n: [r(2 + n, 20, 7, 5)], kernels=1)
module("conv2d_circular", nn.Conv2d, (3, 4, 3, 1, 1, 1, 1, True, "circular"), lambda n: [r(2, 3, 8 + n, 9)], kernels=2)
module("conv2d_reflect", nn.Conv2d, (3, 4, (3, 5), 1, (1, 2), 1, 1, True, "reflect"), lambda n: [r(2, 3, 8 + n, 9)])
module("conv2d_grouped", nn.Conv2d, (8, 12, 3, 2, 1, 1, 2), lambda n: [r(2, 8, 12 + n, 12)], kernels=1)
module("conv2d_depthwise", nn.Conv2d, (6, 6, 3, 1, 1, 1, 6), lambda n: [r(2, 6, 9 + n, 8)], kernels=1)
module("conv2d_no_batch", nn.Conv2d, (3, 4, 3), lambda n: [r(3, 8 + n, 9)], kernels=1)
module("conv2d_one_output", nn.Conv2d, (20, 1, 1), lambda n: [r(2 + n, 20, 7, 5)], kernels=1)
module("conv1d_one_place", nn.Conv1d, (8, 5, 3), lambda n: [r(2 + n, 8, 3)], kernels=1)
module("transposed", nn.ConvTranspose2d, (5, 7, 3), lambda n: [r(2, 5, 6 + n, 5)], kernels=1)
module("transposed1d_strided", nn.ConvTranspose1d, (6, 4, 5, 3, 2, 1), lambda n: [r(2, 6, 7 + n)], kernels=1)
module("transposed_odd", nn.ConvTranspose2d, (4, 5, 3, 2), lambda n: [r(2, 4, 5 + n, 4)], kernels=1)
module("transposed_dilated", nn.ConvTranspose1d, (5, 4, 4, 3, 1, 0, 1, True, 2), lambda n: [r(2, 5, 8 + n)], kernels=1)
module("transposed_gaps", nn.ConvTranspose2d, (4, 3, 3, 2, 1, 0, 1, False, 2), lambda n: [r(2, 4, 5 + n, 4)], kernels=2)
module("transposed_grouped", nn.ConvTranspose2d, (8, 6, (3, 4), 2, 1, 1, 2), lambda n: [r(2, 8, 4 + n, 5)], kernels=1)
module("transposed_depthwise", nn.ConvTranspose1d, (6, 6, 3, 2, 1, 1, 6), lambda n: [r(2, 6, 5 + n)], kernels=1)
module("transposed3d", nn.ConvTranspose3d, (4, 5, 3, 2, 1, 1), lambda n: [r(2, 4, 3 + n, 4, 3)], kernels=1)


class TransposedTail(nn.Module):
    """What follows a transposed convolution is computed in its kernel, though that gives a row too many."""

    def __init__(self):
        super().__init__()
        self.up, self.scale = nn.ConvTranspose2d(6, 8, 3, stride=2), nn.Parameter(torch.randn(8, 1, 1))

    def forward(self, x):
        return F.gelu(self.up(x) * self.scale) + 1.0


CASES["transposed_tail"] = Case(TransposedTail, lambda n: [r(2, 6, 5 + n, 4)], kernels=1)
half = {"tolerance": 2e-3, "halves": True}
module("float16_conv2d", nn.Conv2d, (20, 24, 3, 1, 1), lambda n: [r(2, 20, 9 + n, 11)], kernels=4, **half)
module("float16_conv2d_huge", nn.Conv2d, (16, 8, 3), lambda n: [r(2, 16, 6 + n, 7) * 1e5], halves=True)
module("float16_conv2d_tiny", nn.Conv2d, (16, 8, 3), lambda n: [r(2, 16, 6 + n, 7) * 1e-8], halves=True)
module("float16_conv1d", nn.Conv1d, (32, 9, 4, 3, 2, 2), lambda n: [r(2, 32, 17 + n)], kernels=4, **half)
module("float16_conv3d", nn.Conv3d, (16, 8, (1, 3, 2), (1, 2, 1), (0, 1, 1)), lambda n: [r(2, 16, 3 + n, 6, 5)], **half)
module("float16_transposed", nn.ConvTranspose2d, (16, 8, 3, 2, 1, 1), lambda n: [r(2, 16, 5 + n, 4)], kernels=4, **half)
module("conv3d", nn.Conv3d, (3, 4, (2, 3, 3), 1, (0, 1, 1)), lambda n: [r(2, 3, 5 + n, 7, 6)], kernels=1)


class ConvNormAct(nn.Module):
    """A convolution with a norm in eval mode, an activation, a residual and a pool after it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(F.silu(self.norm(self.conv(x))) + x, 2)


CASES["conv_norm_act_pool"] = Case(ConvNormAct, lambda n: [r(2, 6, 8 + n, 10)], kernels=2)

# Pooling: reductions of windows.
case("max_pool1d", lambda self, x: F.max_pool1d(x, 3, 2, 1), lambda n: [r(2 + n, 3, 17)], kernels=1)
case("max_pool2d", lambda self, x: F.max_pool2d(x, 3, 2, 1), lambda n: [r(2, 3, 13 + n, 11)], kernels=1)
case(
    "max_pool2d_ceil", lambda self, x: F.max_pool2d(x, 3, 2, ceil_mode=True), lambda n: [r(2, 3, 12, 11 + n)], kernels=1
)
case("max_pool2d_dilated", lambda self, x: F.max_pool2d(x, 2, 1, 1, 2), lambda n: [r(2, 3, 9 + n, 8)], kernels=1)
case("max_pool2d_places", lambda self, x: F.max_pool2d(x, 3, 2, 1, return_indices=True), lambda n: [r(2, 3, 9 + n, 8)])
case(
    "max_pool2d_places_of_nothing",  # windows of -inf and padding alone
    lambda self, x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1],
    lambda n: [torch.full((2, 3, 9 + n, 8), -torch.inf)],
)
case(
    "max_pool1d_places_of_nothing_dilated",
    lambda self, x: F.max_pool1d(x, 2, 1, 1, 3, return_indices=True)[1],
    lambda n: [torch.full((2, 3, 9 + n), -torch.inf)],
)
case("max_pool3d", lambda self, x: F.max_pool3d(x, 2), lambda n: [r(2, 3, 4 + n, 6, 8)], kernels=1)
case("avg_pool1d", lambda self, x: F.avg_pool1d(x, 4, 2, 1), lambda n: [r(2, 3, 17 + n)], kernels=1)
case("avg_pool2d", lambda self, x: F.avg_pool2d(x, 3, 2, 1), lambda n: [r(2, 3, 13 + n, 11)], kernels=1)
case(
    "avg_pool2d_ceil",
    lambda self, x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    lambda n: [r(2, 3, 14 + n, 11)],
    kernels=1,
)
case("avg_pool2d_divided", lambda self, x: F.avg_pool2d(x, 2, divisor_override=3), lambda n: [r(2, 3, 8 + n, 6)])
case("avg_pool3d", lambda self, x: F.avg_pool3d(x, 2, 1, 1), lambda n: [r(2, 3, 4 + n, 5, 6)], kernels=1)
case("adaptive_pool1d", lambda self, x: F.adaptive_avg_pool1d(x, 4), lambda n: [r(2, 3, 10 + n)], kernels=1)
case("adaptive_pool2d", lambda self, x: F.adaptive_avg_pool2d(x, (3, 5)), lambda n: [r(2, 3, 8 + n, 7)], kernels=1)
case("adaptive_pool2d_one", lambda self, x: F.adaptive_avg_pool2d(x, 1), lambda n: [r(2, 3, 8 + n, 7)], kernels=1)

case(
    "product_with_an_infinite_number",
    lambda self, x, w: torch.nan_to_num(torch.nn.functional.conv1d(x, w), posinf=500.0, neginf=-500.0),
    lambda n: [r(1, 1, 20 + n), torch.full((1, 1, 1), torch.inf)],
)

# Rows too long for registers, and enough of them that no row is split: what shares a pass is carried together.


def _unusual(rows: int, columns: int) -> torch.Tensor:
    """Rows with -inf before anything else, of -inf alone, with inf, and with NaN."""
    x = torch.randn(rows, columns)
    x[0, : columns // 2] = x[1] = -torch.inf
    x[2, 7], x[3, 8] = torch.inf, torch.nan
    return x


def _told(x: torch.Tensor) -> torch.Tensor:
    """With numbers in place of what compares with nothing."""
    return torch.nan_to_num(x, nan=-7.0, posinf=500.0, neginf=-500.0)


case(
    "walked_softmax",
    lambda self, x: _told(torch.softmax(x, 1) * 1e4),
    lambda n: [_unusual(130, 33_000 + n)],
    kernels=1,
)
case(
    "walked_logsumexp",
    lambda self, x: _told(torch.logsumexp(x, 1)),
    lambda n: [_unusual(130, 33_000 + n)],
    kernels=1,
)
case(
    "walked_softmax_of_greatest",  # written out with amax, which keeps a NaN
    lambda self, x: _told((x - x.amax(1, keepdim=True)).exp().sum(1) + x.amax(1)),
    lambda n: [_unusual(130, 33_000 + n)],
    kernels=1,
)
case(
    "walked_layer_norm",
    lambda self, x: F.layer_norm(x, (x.shape[1],)),
    lambda n: [1e3 + r(130, 33_000 + n)],
    tolerance=2e-4,  # of float32 a thousand from zero
    kernels=1,
)
case(
    "walked_var_mean",
    lambda self, x: tuple(_told(v) for v in torch.var_mean(x, 1)),
    lambda n: [_unusual(130, 33_000 + n)],
    kernels=1,
)
case("walked_argmax", lambda self, x: x.argmax(1), lambda n: [_unusual(130, 33_000 + n)], kernels=1)
# Few rows, cut in chunks: what the chunks carried is put together like lanes.
case("cut_softmax", lambda self, x: _told(torch.softmax(x, 1) * 1e4), lambda n: [_unusual(5, 50_000 + n)], kernels=4)
case("cut_logsumexp", lambda self, x: _told(torch.logsumexp(x, 1)), lambda n: [_unusual(5, 50_000 + n)])
case(
    "cut_layer_norm",
    lambda self, x: F.layer_norm(x, (x.shape[1],)),
    lambda n: [1e3 + r(3, 50_000 + n)],
    tolerance=2e-4,  # of float32 a thousand from zero
)
case("cut_var_mean", lambda self, x: tuple(_told(v) for v in torch.var_mean(x, 1)), lambda n: [_unusual(5, 50_000 + n)])
case("cut_std_of_all", lambda self, x: x.std(), lambda n: [1e4 + r(300, 200 + n)], tolerance=1e-4)
case("cut_columns_var", lambda self, x: x.var(0), lambda n: [1e3 + r(40_000 + n, 3)], tolerance=1e-4)
case("cut_argmin", lambda self, x: x.argmin(1), lambda n: [-_unusual(5, 50_000 + n)], kernels=2)
case("cut_argmax_of_integers", lambda self, x: x.argmax(1), lambda n: [torch.randint(-9, 9, (3, 50_000 + n))])
case(
    "cut_sum_and_greatest",  # of the same elements: they share a kernel
    lambda self, x: (x.sum(1), x.amax(1)),
    lambda n: [r(3, 50_000 + n)],
)
# In float64, where nothing but the order of the sums differs: a mean far above the deviation.
for _name, _rows in (("walked", 130), ("cut", 3)):
    case(
        f"{_name}_var_of_doubles",
        lambda self, x: x.var(1),
        lambda n, rows=_rows: [1e4 + r(rows, 33_000 + n).double()],
        tolerance=1e-11,
    )
    case(
        f"{_name}_log_softmax_of_doubles",
        lambda self, x: torch.log_softmax(x, 1),
        lambda n, rows=_rows: [1e4 + 100 * r(rows, 33_000 + n).double()],
        tolerance=1e-13,
    )
case("walked_columns_std", lambda self, x: x.std(0), lambda n: [1e4 + r(700 + n, 40)], tolerance=2e-4, kernels=1)
case(
    "similarity_with_one_along_the_dim",  # which counts as often as there are elements beside it
    lambda self, x, y: F.cosine_similarity(x, y, -2),
    lambda n: [r(1, 2 + n, 3), r(2, 1, 3)],
)
case(
    "variance_of_too_few",  # NaN where there are no more elements than the correction
    lambda self, x: torch.nan_to_num(torch.var(x, 1, correction=6), nan=-7.0),
    lambda n: [r(3, 8 - 2 * n)],
)
case("number_transposed", lambda self, x, y: y * x.transpose(0, -1), lambda n: [torch.tensor(0.5), r(3 + n)], kernels=1)
case(
    "number_and_elements",
    lambda self, x, y: torch.logical_and(x > 0, y),
    lambda n: [r(5 + n), torch.tensor(0.5)],
)
for _p, _reduction in ((1, "mean"), (2, "none")):
    case(
        f"multi_margin_{_reduction}",  # a NaN is not above 0
        lambda self, x, y, w, p=_p, reduction=_reduction: F.multi_margin_loss(x, y, p, 0.5, w, reduction=reduction),
        lambda n: [_first(r(6 + n, 5), torch.nan), torch.randint(1, 5, (6 + n,)), positive(5)],
    )


# Scans.
case("cumsum", lambda self, x: torch.cumsum(x, -1), lambda n: [r(4, 37 + n)], kernels=1)
case("cumsum_columns", lambda self, x: torch.cumsum(x, 1) * 2.0, lambda n: [r(4, 150 + n, 5)], kernels=1)
case("cumsum_reversed", lambda self, x: x.flip(-1).cumsum(-1).flip(-1), lambda n: [r(4, 37 + n)], kernels=1)
case("cumsum_exclusive", lambda self, x: torch.cumsum(x, -1) - x, lambda n: [r(4, 37 + n)], kernels=1)
case("cumsum_softmax", lambda self, x: torch.softmax(torch.cumsum(x, -1), -1), lambda n: [r(4, 37 + n)])
case("cumsum_long", lambda self, x: torch.cumsum(x, 1), lambda n: [r(2, 40000 + n)], kernels=3)
case("cumsum_long_rows", lambda self, x: torch.cumsum(x * 0.1, 1) + 1.0, lambda n: [r(130, 33000 + n)], kernels=1)
case("cumsum_integers", lambda self, x: torch.cumsum(x, 0), lambda n: [torch.randint(0, 9, (5 + n, 8))], kernels=1)
case("cumprod", lambda self, x: torch.cumprod(x, 0), lambda n: [positive(7, 20 + n)], kernels=1)
case("cumprod_half", lambda self, x: torch.cumprod(x, 1), lambda n: [positive(3, 20 + n).half()], tolerance=2e-3)
case(
    "cumprod_half_columns", lambda self, x: torch.cumprod(x, 0), lambda n: [positive(150 + n, 4).half()], tolerance=2e-3
)
case("logcumsumexp", lambda self, x: torch.logcumsumexp(x, -1), lambda n: [r(4, 37 + n) * 90], kernels=1)
case(
    "logcumsumexp_columns",
    lambda self, x: torch.logcumsumexp(x, 1) * 2.0,
    lambda n: [r(2, 150 + n, 3)],
    kernels=1,
)
case("logcumsumexp_first", lambda self, x: torch.logcumsumexp(x, 0), lambda n: [r(9 + n, 6)], kernels=1)
case("logcumsumexp_long", lambda self, x: torch.logcumsumexp(x, 1) - 1.0, lambda n: [r(1, 33000 + n)], kernels=1)
case(
    "logcumsumexp_half",
    lambda self, x: torch.logcumsumexp(x, 1),
    lambda n: [r(3, 20 + n).half()],
    tolerance=2e-3,
)
case(
    "logcumsumexp_infinite",
    lambda self, x, y: torch.nan_to_num(torch.logcumsumexp(x - y, 1), nan=-700.0, posinf=500.0, neginf=-500.0),
    lambda n: _with_infinities(4, 12 + n),
    kernels=1,
)


# -- nearest interpolation -----------------------------------------------------------------------------------------------
case("nearest_doubled", lambda self, x: F.interpolate(x, scale_factor=2), lambda n: [r(2, 3, 4 + n, 5)], kernels=1)
case(
    "nearest_scales",
    lambda self, x: F.interpolate(x, scale_factor=(3, 2)),
    lambda n: [r(2, 3, 4 + n, 5 + n)],
    kernels=1,
)
case(
    "nearest_added",
    lambda self, x, y: F.interpolate(x, scale_factor=2) + y,
    lambda n: [r(2, 3, 4 + n, 5), r(2, 3, 8 + 2 * n, 10)],
    kernels=1,
)
case("nearest_halved", lambda self, x: F.interpolate(x, scale_factor=0.5), lambda n: [r(2, 3, 8 + n, 7)], kernels=1)
case("nearest_size", lambda self, x: F.interpolate(x, size=(16, 8)), lambda n: [r(2, 3, 5 + n, 3 + n)], kernels=1)
case(
    "nearest_unrelated",
    lambda self, x, y: F.interpolate(x, size=y.shape[2:]) + y,
    lambda n: [r(2, 3, 5 + n, 4), r(2, 3, 7 + n, 4)],
    kept=1,
    kernels=1,
)
case(
    "nearest_known_sizes",
    lambda self, x: F.interpolate(x[:, :, None, None] * torch.arange(162.0, device=x.device).view(6, 27), size=(15, 9)),
    lambda n: [r(2 + n, 3)],
    kernels=1,
)
# In float32, 41 * (1 / 41) is less than 1: torch takes element 0 there, and so has the kernel to.
case("nearest_rounded", lambda self, x: F.interpolate(x, scale_factor=(41, 1)), lambda n: [r(1, 2, 3 + n, 2)])


class TwoFloat16(nn.Module):
    """Two convolutions of one tensor: it is written with its channels last once."""

    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(16, 8, 1)

    def forward(self, x):
        return torch.relu(self.wide(x)) + self.narrow(x)


CASES["float16_two"] = Case(TwoFloat16, lambda n: [r(2, 16, 6 + n, 7)], **half)
case("planes_mm", lambda self, x, y: x @ y, lambda n: [r(33 + n, 70), r(70, 20)], kernels=3, halves=True)
case(
    "planes_bmm",
    lambda self, x, y: torch.bmm(torch.relu(x), y),
    lambda n: [r(3, 17 + n, 40), r(3, 40, 20)],
    kernels=4,
    halves=True,
)
module("planes_linear", nn.Linear, (1100, 24), lambda n: [r(19 + n, 1100)], kernels=4, halves=True)
module("planes_huge", nn.Linear, (70, 24), lambda n: [r(19 + n, 70) * 1e5], halves=True)
module("planes_tiny", nn.Linear, (70, 24), lambda n: [r(19 + n, 70) * 1e-8], halves=True)
case("planes_of_small", lambda self, x, y: torch.exp(x) @ y, lambda n: [r(33 + n, 70) - 20, r(70, 20)], halves=True)
case("cut_and_whole", lambda self, x, y: cut_and_whole(x @ y), lambda n: [r(9 + n, 20), r(20, 12)], kernels=3)
case(
    "split_product",
    lambda self, x, y: torch.relu(x @ y),
    lambda n: [r(8 + n, 4100), r(4100, 20)],
    kernels=2,
    tolerance=5e-5,
)
module("split_linear", nn.Linear, (8192, 24), lambda n: [r(3 + n, 8192)], kernels=2, tolerance=5e-5)
case("crelu", lambda self, x: torch.cat([torch.relu(x), torch.relu(-x)], 1), lambda n: [r(5 + n, 4, 6)], kernels=1)


# -- recurrent layers ------------------------------------------------------------------------------------------------------
module("lstm", nn.LSTM, (6, 20), lambda n: [r(5 + n, 3 + n, 6)], kernels=2)
module("lstm_two_layers", nn.LSTM, (6, 20, 2), lambda n: [r(4 + n, 3, 6)], kernels=4)
module("lstm_unbatched", nn.LSTM, (6, 16), lambda n: [r(4 + n, 6)], kernels=2)
module("gru", nn.GRU, (6, 20), lambda n: [r(4 + n, 3, 6)], kernels=2)
module("rnn_tanh", nn.RNN, (6, 20), lambda n: [r(4 + n, 3, 6)], kernels=2)


class LstmBidirectional(nn.LSTM):
    def __init__(self) -> None:
        super().__init__(6, 20, bidirectional=True, batch_first=True)


CASES["lstm_bidirectional"] = Case(LstmBidirectional, lambda n: [r(3 + n, 4 + n, 6)])


class LstmStates(nn.Module):
    """Without biases, from states that are given, of which the last is used."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(6, 33, bias=False, batch_first=True)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> torch.Tensor:
        output, (hidden, cell) = self.layer(x, (hidden, cell))
        return output[:, -1] + hidden[0] * torch.sigmoid(cell[0])


CASES["lstm_states"] = Case(LstmStates, lambda n: [r(3 + n, 4, 6), r(1, 3 + n, 33), r(1, 3 + n, 33)])


class GruBidirectional(nn.GRU):
    def __init__(self) -> None:
        super().__init__(6, 16, 2, bidirectional=True)


CASES["gru_bidirectional"] = Case(GruBidirectional, lambda n: [r(4 + n, 3, 6)])


class GruHalf(nn.GRU):
    def __init__(self) -> None:
        super().__init__(6, 16)
        self.half()


CASES["gru_half"] = Case(GruHalf, lambda n: [r(4 + n, 3, 6).half()], tolerance=2e-3)


class RnnRelu(nn.RNN):
    def __init__(self) -> None:
        super().__init__(6, 40, 2, nonlinearity="relu", batch_first=True)


CASES["rnn_relu"] = Case(RnnRelu, lambda n: [r(18, 3 + n, 6), r(2, 18, 40)])


class WordsLstm(nn.Module):
    """Embedding, recurrence and a layer over each step."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 12)
        self.layer = nn.LSTM(12, 20, batch_first=True)
        self.head = nn.Linear(20, 7)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.layer(self.embedding(words))[0]))


CASES["words_lstm"] = Case(WordsLstm, lambda n: [torch.randint(0, 30, (3, 4 + n))])


class LstmProjected(nn.LSTM):
    """Its projections stay with torch."""

    def __init__(self) -> None:
        super().__init__(6, 20, proj_size=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(super().forward(x)[0])


CASES["lstm_projected"] = Case(LstmProjected, lambda n: [r(4 + n, 3, 6)], kept=1)


# -- further families, in files of their own -------------------------------------------------------------------------
from . import convolutions, float8  # noqa: E402, F401 (they need what stands above)
