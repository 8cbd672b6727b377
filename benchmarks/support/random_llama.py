"""A Llama of KernelLLM's shape with random weights, as files: what benchmarks of language models load.

``python -m benchmarks.support.random_llama FOLDER`` writes one and prints what it made, as JSON; ``make`` runs it so, in the interpreter
that has torch and transformers. (By its path it would find kernels.py beside it where transformers looks for a package of that name.)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def add_shape(parser: argparse.ArgumentParser) -> None:
    """The options that say how large the model is: by default the configuration of Llama-3.1-8B, which KernelLLM has."""
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--vocabulary", type=int, default=128256)


def shape(options: argparse.Namespace) -> str:
    return f"{options.layers} layers, hidden {options.hidden}, vocabulary {options.vocabulary}"


def make(interpreter: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Write the model and say what ``make_model`` does; in a process of its own, so that nothing of it is left on the GPU."""
    began = time.monotonic()
    command = [interpreter, "-m", "benchmarks.support.random_llama", str(folder), "--layers", str(options.layers)]
    command += ["--hidden", str(options.hidden), "--vocabulary", str(options.vocabulary)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    made: dict[str, Any] = json.loads(output.splitlines()[-1])
    print(f"made {made['bytes'] / 1e9:.2f} GB of weights in {time.monotonic() - began:.0f} s", flush=True)
    return made


def prompt(characters: int) -> str:
    """A text of so many characters, each of which is a token."""
    return ("x = torch.relu(x + 1)\n" * (characters // 21 + 1))[:characters]


def make_model(folder: Path, layers: int, hidden: int, vocabulary: int) -> dict[str, Any]:
    """Write config, tokenizer and random bf16 weights in shards of about 2 GB; measure how fast the device copies."""
    import torch
    from safetensors.torch import save_file
    from transformers import LlamaConfig, LlamaForCausalLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    heads = 32 if hidden >= 1024 else 4
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=hidden * 7 // 2,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 4,
        max_position_embeddings=131072,
        rms_norm_eps=1e-5,
        bos_token_id=vocabulary - 2,
        eos_token_id=vocabulary - 1,
        tie_word_embeddings=False,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        dtype="bfloat16",
        architectures=["LlamaForCausalLM"],
    )
    config.save_pretrained(folder)
    write_tokenizer(folder, vocabulary)
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in LlamaForCausalLM(config).state_dict().items()}
    torch.manual_seed(0)
    shard: dict[str, Any] = {}
    placed, number, embedding = {}, 1, 0
    for i, (name, shape) in enumerate(shapes.items()):
        weight = torch.empty(shape, dtype=torch.bfloat16, device=device)
        shard[name] = (weight.normal_(0, 0.02) if len(shape) > 1 else weight.fill_(1)).cpu()
        embedding += shape.numel() * 2 if "embed_tokens" in name else 0
        placed[name] = f"model-{number:05}.safetensors"
        if sum(t.nbytes for t in shard.values()) > 2e9 or i == len(shapes) - 1:
            save_file(shard, folder / placed[name], metadata={"format": "pt"})
            shard, number = {}, number + 1
    total = sum(shape.numel() * 2 for shape in shapes.values())
    index = {"metadata": {"total_size": total}, "weight_map": placed}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    made = {"bytes": total, "embedding": embedding, "torch": torch.__version__, "device": "CPU", "copy": None}
    if device == "cuda":
        made.update(device=torch.cuda.get_device_name(), copy=copy_rate())
    return made


def copy_rate() -> float:
    """Bytes per second (read and written) of a device-to-device copy of 2 GB, best of 10."""
    import torch

    source = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(10):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) / 1e3)
    return 2 * source.numel() / best


def write_tokenizer(folder: Path, vocabulary: int) -> None:
    """A byte-level tokenizer without merges (one id a byte), padded to the vocabulary's size with words of its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = sorted(pre_tokenizers.ByteLevel.alphabet())
    words += [f"Ġword{i}" for i in range(vocabulary - len(words) - 2)] + ["<|begin_of_text|>", "<|eot_id|>"]
    bpe = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<|begin_of_text|>", eos_token="<|eot_id|>", clean_up_tokenization_spaces=False
    ).save_pretrained(folder)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    add_shape(arguments)
    wanted = arguments.parse_args()
    print(json.dumps(make_model(wanted.folder, wanted.layers, wanted.hidden, wanted.vocabulary)))
    sys.exit(0)
