"""What a kernel may be off by that was asked for with ``precision`` ``tf32`` or ``half``.

The module runs in float64 with the operands of its products rounded as such a kernel rounds them, and its answer moves: that is what
the precision explains, on these inputs and at each output, and no more. Rounding is a sample of errors, each below half a unit of the
eleventh bit; another kernel of the same module takes other samples (it scales an operand before it rounds it, say). So operands are
also rounded after they were multiplied by a factor, and divided by it again: up to ``len(SAMPLES)`` samples, of which the largest counts.

Triton's ``tl.dot`` with ``input_precision="tf32"`` hands float32 operands to the tensor cores as they are, which cut off what is behind ten
bits of mantissa. Of products of one sign these errors add up, where errors of rounding average out. So one sample cuts off, too, at "half" only
what float16's range does not hold. No chance is in it, so ``CUT_COUNTS`` of its error counts.

Tensor cores add up eight products at a time and cut the sum off at float32's 24 bits. A sum of K products may be off by K / 8 units of the
last place of what it comes to on its way, which is added with a random sign.

As for any kernel, ``compare.FACTOR`` times that is allowed, and never more than ``MOST`` explains: where rounding alone makes an answer
useless, because sums cancel or a comparison tips over, a kernel that rounds is wrong. Products are those of matrices and convolutions; what else the module
computes is held to float32.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.validation import compare, randomness
from kernel_lsp.validation.slices import Part, cut
from kernel_lsp.validation.tf32 import rounded as in_tf32

if TYPE_CHECKING:
    from kernel_lsp.validation.oracle import Oracle, Reference

#: the relative error beyond which nothing is explained any more: three times as much is allowed, and less than 0.1 has to be off
MOST = 0.03

#: of each sample how an operand is scaled before it is rounded, between two powers of two, so that other bits are lost; and whether
#: bits of TF32 are cut off instead of rounded
SAMPLES = ((1.0, False), (1.0, True), (1.25, False), (1.4375, False), (1.625, False), (1.75, False), (1.9375, False))

#: the part that counts of the error that cutting off makes: with ``compare.FACTOR`` half as much again is allowed
CUT_COUNTS = 0.5

#: products → where their operands are among the arguments; a bias is added in float32
_OPERANDS = {
    **dict.fromkeys(("aten.mm", "aten.bmm", "aten.mv", "aten.dot", "aten.vdot"), (0, 1)),
    **dict.fromkeys(("aten.addmm", "aten.baddbmm", "aten.addbmm", "aten.addmv"), (1, 2)),
    **dict.fromkeys(("aten.convolution", "aten.cudnn_convolution", "aten.cudnn_convolution_transpose"), (0, 1)),
    **dict.fromkeys(("aten._convolution", "aten.mkldnn_convolution"), (0, 1)),
}

#: float16's range, as kernels look at it: what is larger overflows, and a tensor of nothing but smaller numbers would lose bits
_LEAST_HALF, _MOST_HALF = 2.0**-11, 65504.0

#: relative error of a sum in tensor cores, for each product in it: one unit of float32's last place for eight of them
_OF_A_SUM = 2.0**-26


class _Rounding(TorchDispatchMode):
    """Rounds the operands of products, and lets their sums be off as those of tensor cores are. ``sample``: which of ``SAMPLES``."""

    def __init__(self, precision: str, sample: int) -> None:
        super().__init__()
        self.factor, cut = SAMPLES[sample]
        to_tf32 = cut_to_ten_bits if cut else in_ten_bits
        self.round = functools.partial(in_half, beyond=to_tf32) if precision == "half" else to_tf32
        self.seed = sample
        self.products = 0  # of floating point numbers wide enough to be rounded

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        places = _OPERANDS.get(str(func).rpartition(".")[0])
        if places is None or not all(isinstance(args[i], torch.Tensor) and _wide(args[i]) for i in places):
            return func(*args, **(kwargs or {}))
        args = list(args)
        for i in places:
            args[i] = self.round(args[i] * self.factor) / self.factor
        self.products += 1
        return self._summed(func(*args, **(kwargs or {})), args[places[1]], str(func))

    def _summed(self, result: torch.Tensor, right: torch.Tensor, name: str) -> torch.Tensor:
        length = right.shape[1:].numel() if "conv" in name else right.shape[-2 if right.dim() > 1 else -1]
        generator = torch.Generator(result.device).manual_seed(self.seed + self.products)
        factors = torch.rand(result.shape, generator=generator, device=result.device, dtype=result.dtype)
        factors.sub_(0.5).sign_().mul_(length * _OF_A_SUM).add_(1)
        return result.mul_(factors)


def _wide(tensor: torch.Tensor) -> bool:
    return tensor.dtype in (torch.float64, torch.float32)


def in_ten_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Rounded to TF32, which has ten bits of mantissa, to nearest; of any shape, and of the same dtype afterwards."""
    return in_tf32(tensor.double()).to(tensor.dtype)


def cut_to_ten_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Without the bits behind TF32's ten of mantissa, as tensor cores read it; of any shape, and of the same dtype afterwards."""
    wide = tensor.double()
    cut = (wide.view(torch.int64) & -(1 << 42)).view(torch.float64)
    return torch.where(torch.isfinite(wide), cut, wide).to(tensor.dtype)


def counts(sample: int) -> float:
    """The part of the error of ``sample`` that counts."""
    return CUT_COUNTS if SAMPLES[sample][1] else 1.0


def in_half(tensor: torch.Tensor, beyond: Callable[[torch.Tensor], torch.Tensor] = in_ten_bits) -> torch.Tensor:
    """Rounded to float16, to nearest, with its coarse numbers near zero; of any shape, and of the same dtype afterwards.

    Where float16's range does not suffice it is what ``beyond`` makes of it: a TF32 number.
    """
    if tensor.numel() == 0:
        return tensor
    peak = tensor.abs().max()
    if not bool(torch.isfinite(peak)) or not _LEAST_HALF <= float(peak) <= _MOST_HALF / 2:
        return beyond(tensor)
    return tensor.half().to(tensor.dtype)


def errors(
    oracle: Oracle, tree: Any, reference: Reference, train: bool, precision: str, samples: int
) -> list[float] | None:
    """Of each output the largest relative error that rounding explains; None where the module has no such product.

    Each is ``MOST`` at most. Where float64 does not run, or does not fit, the same is done in the module's own dtype. ``samples``: how many.
    """
    exact = reference.exact if reference.exact is not None and reference.exact is not reference.eager else None
    wide = exact is not None

    def run() -> Any:
        return oracle.exact(tree, train, reference.drawn) if wide else oracle.eager(tree, train)

    return _errors(run, exact if wide else reference.eager, precision, samples, oracle.seed)


def errors_of_slice(
    oracle: Oracle, tree: Any, part: Part, train: bool, precision: str, samples: int, scales: list[torch.Tensor]
) -> list[float] | None:
    """``errors`` for a slice of the inputs, of which ``part`` is float64's answer. ``scales``: of the whole outputs."""
    inputs = cut(tree, oracle.independent[0]["inputs"], part.start, part.stop)
    return _errors(lambda: oracle.exact(inputs, train, []), part.exact, precision, samples, None, scales)


def _errors(
    run: Callable[[], Any],
    right: Any,
    precision: str,
    samples: int,
    seed: int | None,
    scales: list[torch.Tensor] | None = None,
) -> list[float] | None:
    worst: list[float] = []
    for sample in range(samples):
        if seed is not None:
            randomness.seed(seed)
        with rounding(precision, sample) as mode:
            found = run()
        if found is None or not mode.products:
            return None
        moved = [min(counts(sample) * one, MOST) for one in compare.each_error(found, right, scales)]
        worst = [max(pair) for pair in zip(moved, worst or moved, strict=True)]
    return worst


@contextlib.contextmanager
def rounding(precision: str, sample: int) -> Iterator[_Rounding]:
    """Within this context products round their operands as ``precision`` has it. ``sample``: which of ``SAMPLES``."""
    mode = _Rounding(precision, sample)
    with _in_products(), mode:
        yield mode


@contextlib.contextmanager
def _in_products() -> Iterator[None]:
    """Within this context attention is computed as two products, which a dispatch mode sees."""
    with sdpa_kernel(SDPBackend.MATH):
        yield
