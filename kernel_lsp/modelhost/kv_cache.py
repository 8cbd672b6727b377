"""Key-value caches for sampling: one of fixed size that a CUDA graph can be captured over, one that grows.

All samples share one prompt and advance together, so a cache's rows are always equally long: no padding, no mask.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

#: the name under which ``attend`` is registered with transformers
ATTENTION = "kernel_lsp_one_length"

try:
    from kernel_lsp.modelhost import decode_kernels
except ImportError:  # no Triton: PyTorch's attention with a mask serves
    decode_kernels = None  # type: ignore[assignment]


class FixedCache:
    """Keys and values of every layer, [samples, KV heads, length, dim], allocated when the prompt's are known.

    ``filled`` (int64, one element, on the device) counts the positions that hold something, the current token included,
    and ``last`` is the current token's. ``size`` mirrors ``filled`` on the host. Reads stop at ``size`` unless ``whole`` is
    set: then attention goes by ``filled``, so that the same launches serve every step.
    """

    is_compileable = False  # transformers asks; masks and compilation are not its business here
    is_sliding: tuple[bool, ...] = ()

    def __init__(self, samples: int, length: int, device: torch.device) -> None:
        self.samples, self.length = samples, length
        self.filled = torch.zeros(1, dtype=torch.int64, device=device)
        self.last = self.filled - 1
        self.size = 0
        self.whole = False
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []

    def begin(self, tokens: int, whole: bool) -> None:
        """The prompt, of so many tokens, is in."""
        self.size, self.whole = tokens, whole
        self.filled.fill_(tokens)
        self.last.fill_(tokens - 1)

    def advance(self) -> None:
        """A position for the next token, on the device; the host adds one to ``size`` itself."""
        self.filled.add_(1)
        self.last.add_(1)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Filled positions, the same in every layer; transformers asks for it."""
        return self.size

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Put a layer's new keys and values in, and return what attention is to read.

        The prompt's come once, [1, KV heads, tokens, dim], and are copied to every sample; then one token a sample.
        """
        tokens = key.shape[2]
        if layer_idx == len(self.keys):
            self.keys.append(key.new_zeros((self.samples, key.shape[1], self.length, key.shape[3])))
            self.values.append(value.new_zeros((self.samples, value.shape[1], self.length, value.shape[3])))
            self.keys[layer_idx][:, :, :tokens] = key
            self.values[layer_idx][:, :, :tokens] = value
            return key, value
        keys, values = self.keys[layer_idx], self.values[layer_idx]
        if self.whole:
            keys.index_copy_(2, self.last, key)
            values.index_copy_(2, self.last, value)
            return keys, values
        keys[:, :, self.size - 1 : self.size] = key
        values[:, :, self.size - 1 : self.size] = value
        return keys[:, :, : self.size], values[:, :, : self.size]

    def select(self, rows: torch.Tensor) -> None:
        """Keep these samples only, in this order; the memory stays where it is. ``rows``: their numbers, int64 [samples that stay]."""
        for tensors in (self.keys, self.values):
            for i, tensor in enumerate(tensors):
                tensor[: len(rows)] = tensor[rows]
                tensors[i] = tensor[: len(rows)]
        self.samples = len(rows)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    filled: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """An attention function of transformers (``AttentionInterface``) for a ``FixedCache``.

    Args:
        query: [samples, heads, tokens, dim]; key, value: [samples, KV heads, length, dim]. Several tokens are a prompt, and
            causal; a single one sees all that is given, or, where ``filled`` is given, the first ``filled[0]`` positions.

    Returns:
        [samples, tokens, heads, dim] and no weights.
    """
    tokens, dim = query.shape[2:]
    scale = dim**-0.5 if scaling is None else scaling
    if tokens > 1:
        grouped = key.shape[1] != query.shape[1]
        out = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scale, enable_gqa=grouped
        )
    elif filled is not None and decode_kernels and query.is_cuda and _power_of_two(dim) and key.shape == value.shape:
        out = decode_kernels.attention(query, key, value, filled, scale)
    else:
        # The query heads of a KV group become query rows, so that keys and values are not repeated in memory.
        rows = query.reshape(query.shape[0], key.shape[1], -1, dim)
        mask = None if filled is None else torch.arange(key.shape[2], device=key.device)[None, None, None] < filled
        out = functional.scaled_dot_product_attention(rows, key, value, attn_mask=mask, scale=scale)
        out = out.reshape(query.shape[0], query.shape[1], 1, value.shape[3])
    return out.transpose(1, 2).contiguous(), None


def _power_of_two(dim: int) -> bool:
    return dim >= 16 and dim & (dim - 1) == 0


def supports_fixed_cache(config: Any) -> bool:
    """Whether every layer of such a model is plain causal attention, which is all that ``attend`` computes."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    softcap = getattr(config, "attn_logit_softcapping", None)
    return kinds == {"full_attention"} and window is None and softcap is None
