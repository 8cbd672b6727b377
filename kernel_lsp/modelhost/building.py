"""A transformers model without its slow parts: built on the meta device, its weights read straight to where they run."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from kernel_lsp import errors
from kernel_lsp.modelhost import kv_cache, limits, weights

log = logging.getLogger("kernel_lsp.modelhost")

#: architectures whose forward is known (and tested) to leave positions, cache and attention to what it is given
FIXED_CACHE = ("llama", "mistral", "qwen2", "qwen3")

transformers.AttentionInterface.register(kv_cache.ATTENTION, kv_cache.attend)


@dataclass
class Plan:
    """What is to be loaded. ``bytes``: of the weights as ``dtype``."""

    model: str
    folder: Path
    config: Any
    dtype: torch.dtype
    weights: list[weights.Weight]
    bytes: int
    parameters: int


def plan(model: str, folder: Path, dtype: torch.dtype) -> Plan:
    """Look at a model's files without reading its weights.

    Raises:
        ModelMissing: the folder has no config.json.
        ModelDamaged: config.json or the weights cannot be read.
        ModelNotSupported: this transformers does not know the architecture, or the weights are of another kind.
    """
    if not (folder / "config.json").exists():
        raise errors.ModelMissing(model=model, detail=f" ({folder} has no config.json)", command=limits.pull(model))
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        if "trust_remote_code" in str(error) or "not recognize this architecture" in str(error):
            detail = f"this transformers ({transformers.__version__}) does not know its architecture"
            raise errors.ModelNotSupported(model=model, detail=detail) from error
        raise damaged(model, folder, f"config.json: {_brief(error)}") from error
    try:
        found = weights.find(folder)
    except weights.Damaged as error:
        raise damaged(model, folder, str(error)) from error
    others = [*folder.glob("pytorch_model*.bin"), *folder.glob("*.gguf")]
    if not found and not others:
        raise damaged(model, folder, "there are no weights (model.safetensors)")
    size = weights.bytes_as(found, dtype) if found else sum(file.stat().st_size for file in others)
    parameters = sum(math.prod(weight.shape) for weight in found) or size // 2
    return Plan(model, folder, config, dtype, found, size, parameters)


def damaged(model: str, folder: Path, detail: str) -> errors.ModelDamaged:
    """The error for a model whose files cannot be read, with the command that fetches it again."""
    return errors.ModelDamaged(path=str(folder), detail=detail, command=limits.pull(model))


def _brief(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else ''}"


def tokenizer(model: str, folder: Path) -> Any:
    """The model's tokenizer.

    Raises:
        ModelDamaged: its files cannot be read.
    """
    try:
        return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        raise damaged(model, folder, f"its tokenizer: {_brief(error)}") from error


def build(
    plan: Plan, device: torch.device, progress: Callable[[float], None], check: Callable[[], None]
) -> tuple[Any, bool]:
    """The model in eval mode on its device, and whether it runs with a ``FixedCache``.

    Raises:
        ModelDamaged, ModelNotSupported: its files do not give the model.
        torch.OutOfMemoryError, MemoryError: it does not fit.
        Exception: what ``check`` raises.
    """
    fixed = plan.config.model_type in FIXED_CACHE and kv_cache.supports_fixed_cache(plan.config)
    if not fixed:
        log.info("%s: a step is not captured, since %s is not known to allow it", plan.model, plan.config.model_type)
    attention = kv_cache.ATTENTION if fixed else None  # None: what transformers thinks best
    model = _read(plan, device, attention, progress, check) if plan.weights else None
    if model is None:
        model = _from_pretrained(plan, device, attention)
    model.eval()
    model.requires_grad_(False)
    if device.type == "cuda" and kv_cache.decode_kernels is not None:
        _fuse_norms(model)
    return model, fixed


def _fuse_norms(model: Any) -> None:
    """One launch for each RMSNorm, where that computes what the module does: tried on random numbers."""
    trusted: dict[type, bool] = {}
    for module in model.modules():
        kind = type(module)
        if not (
            kind.__name__.endswith("RMSNorm") and hasattr(module, "variance_epsilon") and hasattr(module, "weight")
        ):
            continue
        fused = functools.partial(_normed, module)
        if kind not in trusted:
            generator = torch.Generator(module.weight.device).manual_seed(0)
            x = torch.empty((3, *module.weight.shape), dtype=module.weight.dtype, device=module.weight.device)
            x.normal_(generator=generator)
            tolerance = 4 * torch.finfo(x.dtype).eps
            trusted[kind] = torch.allclose(fused(x), module(x), rtol=tolerance, atol=tolerance)
        if trusted[kind]:
            module.forward = fused


def _normed(module: Any, x: torch.Tensor) -> torch.Tensor:
    return kv_cache.decode_kernels.rms_norm(x, module.weight, module.variance_epsilon)


def _read(
    plan: Plan,
    device: torch.device,
    attention: str | None,
    progress: Callable[[float], None],
    check: Callable[[], None],
) -> Any | None:
    """Weights assigned by name; None if the names in the files are not the model's, and transformers must translate."""
    if getattr(plan.config, "quantization_config", None):
        return None
    try:
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(
                plan.config, dtype=plan.dtype, attn_implementation=attention
            )
    except Exception as error:
        raise errors.ModelNotSupported(model=plan.model, detail=_brief(error)) from error
    names = {weight.name for weight in plan.weights}
    tied = set(getattr(model, "all_tied_weights_keys", None) or {})
    expected = {name: tensor for name, tensor in model.state_dict().items() if name not in tied or name in names}
    if names != expected.keys():
        return None
    for weight in plan.weights:
        if list(expected[weight.name].shape) != weight.shape:
            detail = f"{weight.name} is {weight.shape}, where config.json wants {list(expected[weight.name].shape)}"
            raise damaged(plan.model, plan.folder, detail)
    try:
        tensors = weights.read(plan.weights, device, plan.dtype, progress, check)
    except weights.Damaged as error:
        raise damaged(plan.model, plan.folder, str(error)) from error
    model.load_state_dict(tensors, strict=False, assign=True)
    _fill_buffers(model, device)
    model.tie_weights()
    if any(tensor.is_meta for tensor in [*model.parameters(), *model.buffers()]):
        log.info("%s: has tensors that are in no file; transformers loads it", plan.model)
        return None
    if (plan.folder / "generation_config.json").exists():
        model.generation_config = transformers.GenerationConfig.from_pretrained(plan.folder, local_files_only=True)
    return model


def _fill_buffers(model: Any, device: torch.device) -> None:
    """Compute what no file holds (rotary frequencies), as transformers does after loading."""
    for tensor in [*model.parameters(), *model.buffers()]:
        tensor._is_hf_initialized = not tensor.is_meta  # what was read is not to be drawn anew
    for module in model.modules():
        empty = [name for name, buffer in module.named_buffers(recurse=False) if buffer.is_meta]
        for name in empty:
            setattr(module, name, torch.empty_like(getattr(module, name), device=device))
        if empty:
            with torch.no_grad():
                model._init_weights(module)


def _from_pretrained(plan: Plan, device: torch.device, attention: str | None) -> Any:
    """transformers' own loading, through main memory, for whatever ``_read`` does not do."""
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            plan.folder, local_files_only=True, dtype=plan.dtype, attn_implementation=attention
        )
    except (torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:
        raise damaged(plan.model, plan.folder, _brief(error)) from error
    placed: Any = model
    return placed.to(device)
