"""Names that both sides derive from a class's name. The standard library alone: the worker side imports this, too."""

from __future__ import annotations

import keyword
import re
import unicodedata

#: Names with capitals inside that are one word: those that the rule below would cut.
_ONE_WORD = ("SwiGLU", "GeGLU", "ReGLU", "PReLU", "ReLU", "SiLU", "LoRA", "RoPE", "NeXt", "MoE", "ViT", "DeiT", "CaiT")
#: Two letters and one or two capitals, a whole word: ``DiT``, ``FiLM``, ``NeRF``. Of English words the capitals are another word: ``ToQ``.
_SHORT = re.compile(
    r"(?<![A-Z])(?!As|At|An|By|Do|Go|He|If|In|Is|It|My|No|Of|On|Or|So|To|Up|Us|We)([A-Z][a-z])([A-Z]{1,2})(?=[A-Z][a-z]|[0-9_]|$)"
)

#: As they were for the names of kernel files that earlier versions wrote (``kernel_names.former_paths``).
_FORMER_ONE_WORD = ("SwiGLU", "GeGLU", "ReGLU", "PReLU", "ReLU", "SiLU", "LoRA", "RoPE")
_USUAL = {word.lower(): word for word in _FORMER_ONE_WORD}
#: Abbreviations that have a vowel; those without one are told by that.
_USUAL |= {
    word.lower(): word for word in ("CELU", "ELU", "EMA", "GAN", "GELU", "GLU", "GQA", "GRU", "MHA", "SELU", "VAE")
}

_OF_KERNELS = "Triton"  # the end of a generated class's name


def snake_case(class_name: str) -> str:
    """``LayerNormGELU`` → ``layer_norm_gelu``; ``ConvNeXtBlock`` → ``conv_next_block``; ``Outer.Inner`` → ``outer_inner``."""
    name = class_name.replace(".", "_")
    for word in _ONE_WORD:
        name = name.replace(word, word.capitalize())
    return _in_words(_SHORT.sub(lambda found: found[1] + found[2].lower(), name))


def former_snake_case(class_name: str) -> str:
    """As earlier versions wrote it: ``ConvNeXtBlock`` → ``conv_ne_xt_block``."""
    name = class_name.replace(".", "_")
    for word in _FORMER_ONE_WORD:
        name = name.replace(word, word.capitalize())
    return _in_words(name)


def _in_words(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"_+", "_", name).lower().strip("_")


def kernel_class(class_name: str) -> str:
    """The name of the generated class: ``RMSNorm`` → ``RMSNormTriton``; of a nested class, its own name alone."""
    return class_name.rpartition(".")[2] + _OF_KERNELS


def class_of(kernel_name: str) -> str:
    """The class's own name, from what ``kernel_class`` made of it."""
    return kernel_name.removesuffix(_OF_KERNELS)


def is_usual(class_name: str) -> bool:
    """Whether the name is the one that is written so most often, of those that ``former_snake_case`` makes the same.

    ``RMSNorm``, and not ``RmsNorm``; ``Mean``, and not ``MEAN``. At most one of them is.
    """
    words = former_snake_case(class_name).split("_")
    return class_name == "".join(_USUAL.get(word) or _capitals(word) for word in words)


def _capitals(word: str) -> str:
    abbreviation = word.isascii() and not re.search("[aeiouy]", word)
    return word.upper() if abbreviation else word.capitalize()


def in_ascii(text: str) -> str:
    """``größe`` → ``grosse``; "" of what has no letters of that kind. ptxas reads no others: neither a kernel's name nor that of its file may have any."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKD", text.replace("ß", "ss")).encode("ascii", "ignore").decode()


def as_identifier(text: str) -> str:
    """``text`` in small letters, with an underscore for whatever an identifier cannot hold: ``my-model`` → ``my_model``."""
    small = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return re.sub(r"_+", "_", "".join(c if ("a" + c).isidentifier() else "_" for c in small)).strip("_")


def attribute(path: str) -> str:
    """Python, inside a method, for what state_dict and named_modules call ``path``: ``self.layers[0].weight``."""
    text = "self"
    for part in path.split(".") if path else []:
        if part.isdigit():  # of a ModuleList, Sequential or ParameterList
            text += f"[{part}]"
        elif part.isidentifier() and not keyword.iskeyword(part):
            text += f".{part}"
        else:
            text = f'getattr({text}, "{part}")'
    return text
