"""Example inputs for modules of other models and for activations, as the transformers package has them."""

import torch
from transformers import T5Config
from transformers.activations import AccurateGELUActivation, QuickGELUActivation, ReLUSquaredActivation
from transformers.models.t5.modeling_t5 import T5DenseGatedActDense, T5LayerFF, T5LayerNorm

__all__ = [
    "AccurateGELUActivation",
    "QuickGELUActivation",
    "ReLUSquaredActivation",
    "T5DenseGatedActDense",
    "T5LayerFF",
    "T5LayerNorm",
]

BATCH, LENGTH, HIDDEN = 4, 512, 512


def _config():
    return T5Config(d_model=HIDDEN, d_ff=2 * HIDDEN, feed_forward_proj="gated-gelu")


def get_init_inputs_T5LayerNorm():
    return [1024]


def get_inputs_T5LayerNorm():
    return [torch.randn(BATCH, LENGTH, 1024)]


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
