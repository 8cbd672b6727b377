"""A tiny Llama with random weights, as safetensors and as GGUF: enough to compare backends, not to write kernels."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.tiny_model import gguf_export

CONTEXT = 1024
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE with 600 ids, the special tokens named as Llama 3 names them."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    # A text that does not change: another vocabulary is another model, whose answers may be two words long.
    text = (Path(__file__).parent / "corpus.txt").read_text("utf-8")
    special = ["<|begin_of_text|>", "<|eot_id|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )  # fmt: skip
    bpe.train_from_iterator([text], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token=special[0], eos_token=special[1], clean_up_tokenization_spaces=False
    )
    fast.chat_template = TEMPLATE
    return fast


def make(folder: Path) -> tuple[Path, Path]:
    """``folder``/tiny and ``folder``/tiny.gguf."""
    fast = tokenizer()
    model = LlamaForCausalLM(config(len(fast)))
    generator = torch.Generator().manual_seed(7)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            parameter.data.normal_(0, 1.0 if "embed" in name else 0.1, generator=generator)
    # Each token has a favoured successor, so that the likeliest token is clearly so in every arithmetic (llama.cpp keeps
    # keys and values in fp16); what came before it moves the others.
    head, embedding = model.lm_head.weight.data, model.model.embed_tokens.weight.data
    head[torch.randperm(len(head), generator=generator)] += 0.5 * embedding
    for token, number in fast.get_vocab().items():  # no half characters, whose decoding differs between libraries
        if not fast.backend_tokenizer.decoder.decode([token]).isascii():
            head[number] = 0
    saved = folder / "tiny"
    model.save_pretrained(saved)
    fast.save_pretrained(saved)
    gguf_export.export(saved, folder / "tiny.gguf")
    return saved, folder / "tiny.gguf"


def config(vocabulary: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        bos_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=False,
    )
