"""Which files of a repository make up a model. Works on names alone: the same for the Hub's listing and a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: What transformers needs beside the weights, and what a person should have with them; all at the top of the repository.
_BESIDE_WEIGHTS = re.compile(
    r"config\.json|generation_config\.json|tokenizer\.json|tokenizer\.model|tokenizer_config\.json|special_tokens_map\.json"
    r"|added_tokens\.json|vocab\.json|merges\.txt|chat_template\.(?:jinja|json)|kernelllm\.py",
)
_LICENCE = re.compile(r"(?:licen[cs]e|notice|use_policy|readme)(?:\.(?:md|txt))?", re.IGNORECASE)
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")

_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})$")
_QUANTISATION = re.compile(
    r"(?:^|[-._])((?:i?q\d|tq\d)(?:_[a-z0-9]+)*|mxfp4(?:_moe)?|bf16|f16|f32|fp16|fp32)$", re.IGNORECASE
)
#: GGUF files that are no language model: the vision part, and the statistics a quantisation was made with.
_NO_MODEL = re.compile(r"mmproj|imatrix", re.IGNORECASE)


def safetensors_files(names: Iterable[str]) -> list[str]:
    """What is needed of a model in the Transformers format, small files first; [] if there is no such model.

    Left out: PyTorch pickles, ``original/``, ``consolidated*.safetensors``, adapters, everything in subfolders.
    """
    names = set(names)
    shards = sorted(name for name in names if _SHARD.fullmatch(name))
    if _INDEX in names and shards:
        weights = [_INDEX, *shards]
    elif _SINGLE in names:
        weights = [_SINGLE]
    else:
        return []
    if "config.json" not in names:
        return []
    beside = sorted(name for name in names if _BESIDE_WEIGHTS.fullmatch(name) or _LICENCE.fullmatch(name))
    return [*beside, *weights]


def licence_files(names: Iterable[str]) -> list[str]:
    """Those of ``names`` that may hold the licence: LICENSE, NOTICE, USE_POLICY and README in either spelling."""
    return sorted(name for name in names if _LICENCE.fullmatch(name))


def quantisations(names: Iterable[str]) -> dict[str, list[str]]:
    """Quantisation → its GGUF file, or all parts of a split one in order.

    A file whose name tells no quantisation, or tells one that another file has already, goes by its own name. A split
    one that lacks parts is left out.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.lower().endswith(".gguf") and not _NO_MODEL.search(name.rsplit("/", 1)[-1]):
            groups.setdefault(_SPLIT.sub("", name[: -len(".gguf")]), []).append(name)
    found: dict[str, list[str]] = {}
    for stem, files in groups.items():
        split = _SPLIT.search(files[0][: -len(".gguf")])
        if split and len(files) != int(split[2]):
            continue
        label = quantisation_of(files[0])
        found[label if label not in found else stem] = files
    return found


def quantisation_of(name: str) -> str:
    """The quantisation in a GGUF file's name; where it tells none, the name without its ending."""
    stem = _SPLIT.sub("", name[: -len(".gguf")])
    told = _QUANTISATION.search(stem.rsplit("/", 1)[-1])
    return told[1] if told else stem


def matching(part: str, available: dict[str, list[str]]) -> str | None:
    """The quantisation that ``part`` names: by itself in any case, or by a file of it, with or without its folder."""
    for label, files in available.items():
        if part.lower() == label.lower() or any(part in (file, file.rsplit("/", 1)[-1]) for file in files):
            return label
    return None
