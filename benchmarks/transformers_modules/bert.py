"""Example inputs for modules of BERT, as the transformers package has them. No weights are downloaded."""

import torch
from transformers import BertConfig
from transformers.models.bert.modeling_bert import (
    BertAttention,
    BertEmbeddings,
    BertEncoder,
    BertIntermediate,
    BertLayer,
    BertOutput,
    BertPooler,
    BertSelfAttention,
    BertSelfOutput,
)

__all__ = [
    "BertAttention",
    "BertEmbeddings",
    "BertEncoder",
    "BertIntermediate",
    "BertLayer",
    "BertOutput",
    "BertPooler",
    "BertSelfAttention",
    "BertSelfOutput",
]

BATCH, LENGTH, HIDDEN = 4, 512, 512


def _config(attention="eager", **others):
    """A small BERT: 8 heads of 64."""
    return BertConfig(
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_attention_heads=8,
        attn_implementation=attention,
        **others,
    )


def _hidden():
    return torch.randn(BATCH, LENGTH, HIDDEN)


def _padding():
    """Added to the scores: the last 64 positions of the first sequence are padding."""
    mask = torch.zeros(BATCH, 1, 1, LENGTH)
    mask[0, ..., -64:] = torch.finfo(torch.float32).min
    return mask


def get_init_inputs_BertEmbeddings():
    return [_config(vocab_size=8192)]


def get_inputs_BertEmbeddings():
    return [torch.randint(0, 8192, (BATCH, LENGTH)), torch.randint(0, 2, (BATCH, LENGTH))]


def get_init_inputs_BertSelfAttention():
    return [_config()]


def get_inputs_BertSelfAttention():
    return [_hidden(), _padding()]


def get_init_inputs_BertSelfOutput():
    return [_config()]


def get_inputs_BertSelfOutput():
    return [_hidden(), _hidden()]


def get_init_inputs_BertAttention():
    return [_config("sdpa")]


def get_inputs_BertAttention():
    """No mask: every position sees every other."""
    return [_hidden(), None]


def get_init_inputs_BertIntermediate():
    return [_config()]


def get_inputs_BertIntermediate():
    return [_hidden()]


def get_init_inputs_BertOutput():
    return [_config()]


def get_inputs_BertOutput():
    return [torch.randn(BATCH, LENGTH, 2 * HIDDEN), _hidden()]


def get_init_inputs_BertLayer():
    return [_config("sdpa")]


def get_inputs_BertLayer():
    return [_hidden()]


def get_init_inputs_BertEncoder():
    return [_config("sdpa", num_hidden_layers=1)]


def get_inputs_BertEncoder():
    return [_hidden()]


def get_init_inputs_BertPooler():
    return [_config()]


def get_inputs_BertPooler():
    return [_hidden()]
