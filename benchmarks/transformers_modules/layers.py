"""Example inputs for whole layers of further models, as the transformers package has them. No weights are downloaded."""

import torch
from transformers import (
    CLIPVisionConfig,
    FalconConfig,
    Gemma2Config,
    GPTNeoXConfig,
    MambaConfig,
    MistralConfig,
    Olmo2Config,
    OPTConfig,
    Phi3Config,
    Qwen3Config,
    WhisperConfig,
)
from transformers.models.clip.modeling_clip import CLIPEncoderLayer
from transformers.models.falcon.modeling_falcon import FalconMLP
from transformers.models.gemma2.modeling_gemma2 import Gemma2DecoderLayer
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXLayer
from transformers.models.mamba.modeling_mamba import MambaMixer
from transformers.models.mistral.modeling_mistral import MistralDecoderLayer
from transformers.models.olmo2.modeling_olmo2 import Olmo2DecoderLayer
from transformers.models.opt.modeling_opt import OPTDecoderLayer
from transformers.models.phi3.modeling_phi3 import Phi3DecoderLayer
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer
from transformers.models.whisper.modeling_whisper import WhisperEncoderLayer

__all__ = [
    "CLIPEncoderLayer",
    "FalconMLP",
    "GPTNeoXLayer",
    "Gemma2DecoderLayer",
    "MambaMixer",
    "MistralDecoderLayer",
    "OPTDecoderLayer",
    "Olmo2DecoderLayer",
    "Phi3DecoderLayer",
    "Qwen3DecoderLayer",
    "WhisperEncoderLayer",
]

BATCH, LENGTH, HIDDEN, HEAD = 4, 512, 512, 64
_SIZES = {
    "hidden_size": HIDDEN,
    "intermediate_size": 2 * HIDDEN,
    "num_attention_heads": HIDDEN // HEAD,
    "attn_implementation": "sdpa",
}
_GROUPED = {**_SIZES, "num_key_value_heads": 4, "head_dim": HEAD}


def _hidden():
    return torch.randn(BATCH, LENGTH, HIDDEN)


def _rotated(size=HEAD):
    """Inputs of a decoder layer: hidden states, and the rotary embedding as (cos, sin). Attention without a mask is causal by itself."""
    angles = torch.arange(LENGTH)[:, None] * 10000.0 ** (-torch.arange(size // 2) / (size // 2))
    angles = torch.cat([angles, angles], dim=-1)[None]
    return [[_hidden()], {"position_embeddings": (angles.cos(), angles.sin())}]


def get_init_inputs_MistralDecoderLayer():
    return [MistralConfig(**_GROUPED, sliding_window=None), 0]


def get_inputs_MistralDecoderLayer():
    return _rotated()


def get_init_inputs_Qwen3DecoderLayer():
    return [Qwen3Config(**_GROUPED), 0]


def get_inputs_Qwen3DecoderLayer():
    return _rotated()


def get_init_inputs_Gemma2DecoderLayer():
    return [Gemma2Config(**_GROUPED | {"attn_implementation": "eager"}), 1]


def get_inputs_Gemma2DecoderLayer():
    """Scores are capped by tanh, so attention is eager, with a causal mask that is added to the scores."""
    args, kwargs = _rotated()
    mask = torch.full((LENGTH, LENGTH), torch.finfo(torch.float32).min).triu(1)[None, None]
    return [args, kwargs | {"attention_mask": mask}]


def get_init_inputs_Olmo2DecoderLayer():
    return [Olmo2Config(**{k: v for k, v in _GROUPED.items() if k != "head_dim"}), 0]


def get_inputs_Olmo2DecoderLayer():
    return _rotated()


def get_init_inputs_Phi3DecoderLayer():
    sizes = {k: v for k, v in _GROUPED.items() if k != "head_dim"}
    return [Phi3Config(**sizes, pad_token_id=0, bos_token_id=1, eos_token_id=1), 0]


def get_inputs_Phi3DecoderLayer():
    return _rotated()


def get_init_inputs_GPTNeoXLayer():
    return [GPTNeoXConfig(**_SIZES), 0]


def get_inputs_GPTNeoXLayer():
    """A quarter of each head is rotated."""
    args, kwargs = _rotated(HEAD // 4)
    return [args, kwargs | {"attention_mask": None}]


def get_init_inputs_OPTDecoderLayer():
    sizes = {"hidden_size": HIDDEN, "ffn_dim": 2 * HIDDEN, "num_attention_heads": HIDDEN // HEAD}
    return [OPTConfig(**sizes, attn_implementation="sdpa"), 0]


def get_inputs_OPTDecoderLayer():
    return [_hidden()]


def get_init_inputs_WhisperEncoderLayer():
    sizes = {"d_model": HIDDEN, "encoder_ffn_dim": 4 * HIDDEN, "encoder_attention_heads": HIDDEN // HEAD}
    return [WhisperConfig(**sizes, attn_implementation="sdpa")]


def get_inputs_WhisperEncoderLayer():
    return [[_hidden()], {"attention_mask": None}]


def get_init_inputs_CLIPEncoderLayer():
    return [CLIPVisionConfig(**_SIZES)]


def get_inputs_CLIPEncoderLayer():
    return [[_hidden()], {"attention_mask": None}]


def get_init_inputs_FalconMLP():
    return [FalconConfig(hidden_size=HIDDEN, num_attention_heads=HIDDEN // HEAD)]


def get_inputs_FalconMLP():
    return [_hidden()]


def get_init_inputs_MambaMixer():
    """16 states for each of 512 channels, scanned step by step."""
    return [MambaConfig(hidden_size=HIDDEN // 2), 0]


def get_inputs_MambaMixer():
    return [torch.randn(BATCH, LENGTH // 4, HIDDEN // 2)]
