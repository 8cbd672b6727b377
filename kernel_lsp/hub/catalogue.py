"""The models that are known by a short name, and what a name given by the user means.

Sizes are in bytes, as on the Hub to two digits: enough to choose by; what is fetched is measured exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kernel_lsp.errors import ModelNameInvalid

Kind = Literal["safetensors", "gguf"]

#: Which generator runs a model of that kind.
GENERATORS: dict[Kind, str] = {"safetensors": "kernelllm", "gguf": "llama-cpp"}

_HALF_GIB = 512 << 20
#: What the Hub allows as organisation/repository; so a name can never lead out of the cache's folder.
_REPOSITORY = re.compile(r"[A-Za-z0-9_](?:[\w.-]*[\w])?/[A-Za-z0-9_](?:[\w.-]*[\w])?", re.ASCII)


@dataclass(frozen=True)
class Quantisation:
    """A GGUF file of a known model; ``name``: its label, such as ``Q4_K_M``."""

    name: str
    bytes: int  # of the file


@dataclass(frozen=True)
class Known:
    """A model with a short name.

    Attributes:
        repositories: on the Hub; the first is the one to fetch, the others serve where they are in the cache.
        bytes: of the weights; 0 where the quantisations say it.
        licence_page: where the licence stands, if the model card gives no link.
    """

    name: str
    about: str
    kind: Kind
    repositories: tuple[str, ...]
    bytes: int
    quantisations: tuple[Quantisation, ...]
    licence_page: str


CATALOGUE = (
    Known(
        name="kernelllm",
        about="KernelLLM 8B, bf16, for transformers",
        kind="safetensors",
        repositories=("facebook/KernelLLM",),
        bytes=16_100_000_000,
        quantisations=(),
        licence_page="https://huggingface.co/facebook/KernelLLM",
    ),
    Known(
        name="kernelllm-gguf",
        about="KernelLLM 8B, quantised, for llama.cpp",
        kind="gguf",
        repositories=("bartowski/facebook_KernelLLM-GGUF", "Mungert/KernelLLM-GGUF"),
        bytes=0,
        quantisations=(
            Quantisation("Q4_K_M", 4_900_000_000),
            Quantisation("Q5_K_M", 5_700_000_000),
            Quantisation("Q6_K", 6_600_000_000),
            Quantisation("Q8_0", 8_500_000_000),
            Quantisation("bf16", 16_100_000_000),
        ),
        licence_page="https://huggingface.co/facebook/KernelLLM",
    ),
)


@dataclass(frozen=True)
class Wanted:
    """What a name means. ``part`` is a quantisation or a file, "" where none was given; ``kind`` None if any will do."""

    name: str
    repositories: tuple[str, ...]
    kind: Kind | None
    part: str
    known: Known | None = None

    @property
    def repository(self) -> str:
        """The first of the repositories that may hold it, from which it is fetched."""
        return self.repositories[0]


def known_names() -> list[str]:
    """The short names of the catalogue, in its order."""
    return [model.name for model in CATALOGUE]


def wanted(name: str) -> Wanted:
    """``kernelllm``, ``kernelllm-gguf[:Q4_K_M]`` or ``organisation/repository[:file or quantisation]``.

    Raises:
        ModelNameInvalid: the name has none of these forms.
    """
    model, colon, part = name.strip().partition(":")
    for known in CATALOGUE:
        if model.lower() == known.name or model in known.repositories:
            repositories = known.repositories if model.lower() == known.name else (model,)
            if known.kind == "gguf" or not colon:
                return Wanted(name, repositories, known.kind, part, known)
    if not _REPOSITORY.fullmatch(model) or ".." in model or "--" in model or len(model) > 96 or (colon and not part):
        raise ModelNameInvalid(name=name, known=", ".join(known_names()))
    return Wanted(name, (model,), "gguf" if part else None, part)


def known_by_repository(repository: str) -> Known | None:
    """The known model that a repository on the Hub holds in one of its forms."""
    return next((known for known in CATALOGUE if repository in known.repositories), None)


def needed_bytes(weights: int) -> int:
    """Memory, in bytes, in which a model whose weights have ``weights`` bytes works.

    That is a quarter more for the attention cache and what is computed, and half a GiB for the runtime. KernelLLM in bf16:
    20.7 GB; as Q4_K_M: 6.7 GB.
    """
    return weights + weights // 4 + _HALF_GIB
