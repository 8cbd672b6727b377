"""A Llama in the Transformers format written as a GGUF file, in fp32, with its byte-level BPE tokenizer.

llama.cpp's own converter is not on PyPI. This one covers what tests need: ``LlamaForCausalLM`` without scaled rotary
embeddings. Layout: the rows of q and k are reordered, since llama.cpp rotates neighbouring pairs where transformers
rotates the two halves of a head.
"""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

_OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_INNER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def export(model_folder: Path, path: Path) -> None:
    """Write ``path`` from the config, safetensors and tokenizer.json in ``model_folder``."""
    config = AutoConfig.from_pretrained(model_folder)
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    heads = config.num_attention_heads
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name(model_folder.name)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // heads)
    writer.add_rope_freq_base((getattr(config, "rope_parameters", None) or {}).get("rope_theta", 10000.0))
    _add_tokenizer(writer, model_folder, config)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        array = tensor.numpy()
        if name.endswith("q_proj.weight"):
            array = _interleaved(array, heads)
        elif name.endswith("k_proj.weight"):
            array = _interleaved(array, config.num_key_value_heads)
        writer.add_tensor(_name(name), np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter, folder: Path, config: AutoConfig) -> None:
    """The vocabulary, with an added begin-of-text, and the chat template if there is one."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = dict(tokenizer["model"]["vocab"])
    control = set()
    for token in tokenizer["added_tokens"]:
        vocabulary[token["content"]] = token["id"]
        if token["special"]:
            control.add(token["id"])
    tokens = [f"[unused{i}]" for i in range(config.vocab_size)]
    for text, number in vocabulary.items():
        tokens[number] = text
    unused = set(range(config.vocab_size)) - set(vocabulary.values())
    kinds = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_types(
        [kinds.CONTROL if i in control else kinds.UNUSED if i in unused else kinds.NORMAL for i in range(len(tokens))]
    )
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(ends[0])
    if len(ends) > 1:  # llama.cpp knows one end of text and one end of turn
        writer.add_eot_token_id(ends[1])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    template = folder / "chat_template.jinja"
    if template.exists():
        writer.add_chat_template(template.read_text("utf-8"))


def _name(name: str) -> str:
    """``model.layers.3.mlp.up_proj.weight`` → ``blk.3.ffn_up.weight``."""
    stem, _, suffix = name.rpartition(".")
    if stem in _OUTER:
        return f"{_OUTER[stem]}.{suffix}"
    _, _, layer, inner = stem.split(".", 3)
    return f"blk.{layer}.{_INNER[inner]}.{suffix}"


def _interleaved(array: np.ndarray, heads: int) -> np.ndarray:
    """Rows of each head from halves to neighbouring pairs."""
    rows = array.shape[0] // heads
    return array.reshape(heads, 2, rows // 2, -1).swapaxes(1, 2).reshape(array.shape)
