"""Example inputs for modules of Llama, as the transformers package has them. No weights are downloaded."""

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaDecoderLayer,
    LlamaMLP,
    LlamaModel,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
)

__all__ = ["LlamaAttention", "LlamaDecoderLayer", "LlamaMLP", "LlamaModel", "LlamaRMSNorm", "LlamaRotaryEmbedding"]

BATCH, LENGTH, HIDDEN = 4, 512, 512


def _config(attention="eager"):
    """A small Llama: 8 query heads of 64 that share 4 key-value heads."""
    return LlamaConfig(
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_attention_heads=8,
        num_key_value_heads=4,
        attn_implementation=attention,
    )


def _position_embeddings():
    angles = torch.arange(LENGTH)[:, None] * 10000.0 ** (-torch.arange(32) / 32)
    angles = torch.cat([angles, angles], dim=-1)[None]
    return angles.cos(), angles.sin()


def _causal_mask():
    return torch.full((LENGTH, LENGTH), torch.finfo(torch.float32).min).triu(1)[None, None]


def get_init_inputs_LlamaRMSNorm():
    return [1024]


def get_inputs_LlamaRMSNorm():
    return [torch.randn(BATCH, LENGTH, 1024)]


def get_init_inputs_LlamaRotaryEmbedding():
    return [_config()]


def get_inputs_LlamaRotaryEmbedding():
    return [torch.randn(BATCH, LENGTH, HIDDEN), torch.arange(LENGTH).expand(BATCH, LENGTH).contiguous()]


def get_init_inputs_LlamaMLP():
    return [_config()]


def get_inputs_LlamaMLP():
    return [torch.randn(BATCH, LENGTH, HIDDEN)]


def get_init_inputs_LlamaAttention():
    return [_config(), 0]


def get_inputs_LlamaAttention():
    """The rotary embedding as (cos, sin), and a causal mask that is added to the scores."""
    x = torch.randn(BATCH, LENGTH, HIDDEN)
    return [[x], {"position_embeddings": _position_embeddings(), "attention_mask": _causal_mask()}]


def get_init_inputs_LlamaDecoderLayer():
    return [_config("sdpa"), 0]


def get_inputs_LlamaDecoderLayer():
    """No mask: scaled_dot_product_attention is then causal by itself."""
    x = torch.randn(BATCH, LENGTH, HIDDEN)
    return [[x], {"attention_mask": None, "position_embeddings": _position_embeddings()}]


def get_init_inputs_LlamaModel():
    """A whole model, of one small layer: it returns an object of its own kind."""
    config = LlamaConfig(
        vocab_size=1024, hidden_size=256, intermediate_size=512, num_hidden_layers=1, num_attention_heads=4
    )
    return [config]


def get_inputs_LlamaModel():
    return [[torch.randint(0, 1024, (2, 64))], {"use_cache": False}]
