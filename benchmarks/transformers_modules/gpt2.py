"""Example inputs for modules of GPT-2, as the transformers package has them. No weights are downloaded."""

import torch
from transformers import GPT2Config
from transformers.activations import NewGELUActivation
from transformers.models.gpt2.modeling_gpt2 import GPT2MLP, GPT2Attention, GPT2Block
from transformers.pytorch_utils import Conv1D

__all__ = ["GPT2MLP", "Conv1D", "GPT2Attention", "GPT2Block", "NewGELUActivation"]

BATCH, LENGTH, HIDDEN = 4, 512, 512


def _config(attention="eager"):
    """A small GPT-2: 8 heads of 64."""
    return GPT2Config(n_embd=HIDDEN, n_head=8, n_inner=2 * HIDDEN, attn_implementation=attention)


def get_inputs_NewGELUActivation():
    return [torch.randn(BATCH, LENGTH, 4096)]


def get_init_inputs_Conv1D():
    return [3 * HIDDEN, HIDDEN]


def get_inputs_Conv1D():
    return [torch.randn(BATCH, LENGTH, HIDDEN)]


def get_init_inputs_GPT2MLP():
    return [2 * HIDDEN, _config()]


def get_inputs_GPT2MLP():
    return [torch.randn(BATCH, LENGTH, HIDDEN)]


def get_init_inputs_GPT2Attention():
    return [[_config()], {"layer_idx": 0}]


def get_inputs_GPT2Attention():
    """With a causal mask that is added to the scores."""
    mask = torch.full((LENGTH, LENGTH), torch.finfo(torch.float32).min).triu(1)[None, None]
    return [[torch.randn(BATCH, LENGTH, HIDDEN)], {"attention_mask": mask}]


def get_init_inputs_GPT2Block():
    return [[_config("sdpa")], {"layer_idx": 0}]


def get_inputs_GPT2Block():
    """No mask: scaled_dot_product_attention is then causal by itself."""
    return [torch.randn(BATCH, LENGTH, HIDDEN)]
