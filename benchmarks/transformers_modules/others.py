"""Example inputs for modules of other models and for activations, as the transformers package has them."""

import torch
from transformers import MixtralConfig, T5Config, ViTConfig
from transformers.activations import AccurateGELUActivation, QuickGELUActivation, ReLUSquaredActivation
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.t5.modeling_t5 import T5Attention, T5DenseGatedActDense, T5LayerFF, T5LayerNorm
from transformers.models.vit.modeling_vit import ViTEmbeddings, ViTLayer

__all__ = [
    "AccurateGELUActivation",
    "MixtralSparseMoeBlock",
    "QuickGELUActivation",
    "ReLUSquaredActivation",
    "T5Attention",
    "T5DenseGatedActDense",
    "T5LayerFF",
    "T5LayerNorm",
    "ViTEmbeddings",
    "ViTLayer",
]

BATCH, LENGTH, HIDDEN = 4, 512, 512


def _config():
    return T5Config(d_model=HIDDEN, d_ff=2 * HIDDEN, feed_forward_proj="gated-gelu")


def get_init_inputs_T5LayerNorm():
    return [1024]


def get_inputs_T5LayerNorm():
    return [torch.randn(BATCH, LENGTH, 1024)]


def get_init_inputs_T5Attention():
    """With the relative position bias that the first layer computes for all."""
    config = T5Config(d_model=HIDDEN, d_kv=64, num_heads=8)
    return [[config], {"has_relative_attention_bias": True, "layer_idx": 0}]


def get_inputs_T5Attention():
    return [torch.randn(BATCH, LENGTH, HIDDEN)]


def get_init_inputs_T5DenseGatedActDense():
    return [_config()]


def get_inputs_T5DenseGatedActDense():
    return [torch.randn(BATCH, LENGTH, HIDDEN)]


def get_init_inputs_T5LayerFF():
    return [_config()]


def get_inputs_T5LayerFF():
    return [torch.randn(BATCH, LENGTH, HIDDEN)]


def get_inputs_AccurateGELUActivation():
    return [torch.randn(BATCH, LENGTH, 4096)]


def get_inputs_QuickGELUActivation():
    return [torch.randn(BATCH, LENGTH, 4096)]


def get_inputs_ReLUSquaredActivation():
    return [torch.randn(BATCH, LENGTH, 4096)]


def _vit():
    return ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=768, image_size=112, patch_size=16)


def get_init_inputs_ViTEmbeddings():
    return [_vit()]


def get_inputs_ViTEmbeddings():
    return [torch.randn(16, 3, 112, 112)]


def get_init_inputs_ViTLayer():
    return [_vit()]


def get_inputs_ViTLayer():
    return [torch.randn(16, 50, 384)]


def get_init_inputs_MixtralSparseMoeBlock():
    """Which expert a token goes to depends on the data."""
    return [MixtralConfig(hidden_size=256, intermediate_size=256, num_local_experts=4)]


def get_inputs_MixtralSparseMoeBlock():
    return [torch.randn(BATCH, 64, 256)]
