"""Other values for a module's parameters and buffers than those that it was constructed with."""

from __future__ import annotations

import math

import torch

#: parameters of a smaller mean magnitude (LayerScale begins with 1e-6 to 1e-4) hide what they scale, and are moved as zeros are
_FAINT = 1e-3


def perturb(module: torch.nn.Module, seed: int) -> None:
    """Move every float parameter and persistent float buffer off its initial value, keeping its scale.

    So a kernel that ignores a bias of zeros or a weight of ones is found out, or a branch behind a scale of nearly nothing.
    Where all elements have one sign they keep it: forward may take their logarithm or root.
    """
    parameters = {name for name, _ in module.named_parameters()}
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if not tensor.dtype.is_floating_point or tensor.dtype.itemsize == 1:
                continue  # of a float8 torch knows next to no operation
            generator = torch.Generator(tensor.device).manual_seed(seed)
            seed += 1
            noise = torch.randn(tensor.shape, generator=generator, device=tensor.device).to(tensor)
            finite = torch.where(torch.isfinite(tensor), tensor, 0)
            scale = finite.float().abs().mean().item() if tensor.numel() else 0.0
            del finite
            if name in parameters:
                low, high = tensor.aminmax() if scale > 0 else (-1, 1)
                tensor.add_(noise.mul_(0.2 * scale + (0.3 if scale < _FAINT else 0)))
                if low >= 0:
                    tensor.abs_()
                elif high <= 0:
                    tensor.abs_().neg_()
            elif scale > 0:
                tensor.mul_(noise.abs_().mul_(0.1).add_(1))
            elif tensor.dim():
                tensor.add_(noise.mul_(0.1))


def negatable(module: torch.nn.Module) -> tuple[list[str], list[str]]:
    """Names in the state_dict: of the float parameters, and of the float buffers but the running statistics of torch's norms, which cannot be negative."""
    statistics = {
        f"{path}.{name}".lstrip(".")
        for path, child in module.named_modules()
        if isinstance(child, torch.nn.modules.batchnorm._NormBase)
        for name in ("running_mean", "running_var")
    }
    of_parameters = {name for name, _ in module.named_parameters()}
    floats = [n for n, t in module.state_dict().items() if t.dtype.is_floating_point and t.dtype.itemsize > 1]
    buffers = [name for name in floats if name not in of_parameters | statistics]
    return [name for name in floats if name in of_parameters], buffers


def scale(module: torch.nn.Module, factor: float, names: list[str] | None = None) -> None:
    """Multiply parameters and persistent float buffers, or those of these names; with a power of two, and back, nothing is lost in float32."""
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if (names is None or name in names) and tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1:
                tensor.mul_(factor if tensor.dtype.itemsize > 2 else math.copysign(abs(factor) ** 0.5, factor))
