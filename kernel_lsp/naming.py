"""Names that both sides derive from a class's name. The standard library alone: the worker side imports this, too."""

from __future__ import annotations

import re

#: Names with capitals inside that are one word.
_ONE_WORD = ("SwiGLU", "GeGLU", "ReGLU", "PReLU", "ReLU", "SiLU", "LoRA", "RoPE")


def snake_case(class_name: str) -> str:
    """``LayerNormGELU`` → ``layer_norm_gelu``; ``LinearReLU`` → ``linear_relu``; ``Outer.Inner`` → ``outer_inner``."""
    name = class_name.replace(".", "_")
    for word in _ONE_WORD:
        name = name.replace(word, word.capitalize())
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"_+", "_", name).lower().strip("_")
