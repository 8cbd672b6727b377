"""A first value for a parameter, from its annotation or its name: for stubs of example inputs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_TENSOR = re.compile(r"(?:^|\.)(?P<kind>Float|Double|Half|BFloat16|Long|Int|Short|Byte|Bool)?Tensor$")
_INTEGERS = ("ids", "idx", "index", "indices", "tokens", "labels", "target", "targets", "positions")
_INT, _FLOAT, _BOOL, _STR = ("int", "builtins.int"), ("float",), ("bool",), ("str",)


@dataclass(frozen=True)
class Value:
    """``code``: in Python; ``toml``: in pyproject.toml, None where it cannot be written there; ``note``: a comment's end."""

    code: str
    toml: str | None = None
    note: str = ""
    tensor: bool = False


def tensor(name: str, annotation: str, shape: tuple[int, ...], below: int | None = None) -> Value:
    """A tensor of that shape: of integers below 100 for what is called an index, of Booleans for a mask.

    ``below``: what integers are less than, where the class says that it takes integers.
    """
    sizes = ", ".join(map(str, shape))
    found = _TENSOR.search(_without_optional(annotation))
    kind = (found["kind"] or "") if found else ""
    note = ": its shape and dtype"
    called_index = not kind and name.rsplit("_", 1)[-1] in _INTEGERS
    if below is not None or kind in ("Long", "Int", "Short", "Byte") or called_index:
        end = 100 if below is None else below
        return Value(f"torch.randint(0, {end}, ({sizes}))", f'"int64[{sizes}] < {end}"', note, True)
    if kind == "Bool" or (not kind and name.endswith("mask")):
        return Value(f"torch.ones({sizes}, dtype=torch.bool)", f'"bool[{sizes}]"', note, True)
    return Value(f"torch.randn({sizes})", f'"float32[{sizes}]"', note, True)


def by_annotation(name: str, annotation: str) -> Value | None:
    """A value of an annotated type; None where the annotation names a class that this does not know."""
    text = _without_optional(annotation)
    if _TENSOR.search(text):
        return tensor(name, text, (8, 128))
    if text in (*_INT, *_FLOAT, *_BOOL, *_STR):
        return by_name(name, text)
    head, _, inner = text.partition("[")
    parts = _split(inner[:-1]) if inner.endswith("]") else []
    kind = head.rpartition(".")[2].lower()
    if kind == "literal" and parts:
        return _constant(parts[0])
    if kind in ("list", "sequence", "iterable", "tuple"):
        return _several(name, parts, kind)
    if kind in ("dict", "mapping"):
        return Value("{}", "{}")
    if text in ("torch.dtype", "dtype"):
        return Value("torch.float32")
    if text in ("torch.device", "device"):
        return Value('torch.device("cpu")')
    if kind == "callable":
        return Value("torch.nn.functional.relu")
    if text in ("nn.Module", "torch.nn.Module"):
        return Value("torch.nn.Identity()")
    return None


def by_name(name: str, kind: str) -> Value:
    """A value for a name. ``kind``: int, float, bool or str where that is annotated; "" where nothing is."""
    low = name.lower()
    if kind == "bool" or (not kind and (low.endswith("bias") or low.startswith(("use_", "is_", "has_")))):
        return Value("True", "true")
    if kind == "str" or (not kind and (low.endswith(("act", "activation")) or low in ("mode", "act_fn"))):
        text = "silu" if "act" in low else ""
        return Value(f'"{text}"', f'"{text}"')
    if kind == "float" or not kind:
        if "eps" in low:
            return Value("1e-5", "1e-5")
        if "drop" in low or low in ("p", "prob"):
            return Value("0.0", "0.0")
        if kind == "float" or low in ("scale", "alpha", "beta", "temperature", "momentum", "theta"):
            return Value("1.0", "1.0")
    number = 64
    for part, size in (("kernel", 3), ("head_dim", 8), ("heads", 8), ("groups", 8), ("layers", 2), ("experts", 4),
                       ("stride", 1), ("padding", 1), ("dilation", 1), ("intermediate", 128), ("vocab", 1000), ("top_k", 2)):  # fmt: skip
        if part in low:
            number = size
            break
    return Value(str(number), str(number))


def _several(name: str, parts: list[str], kind: str) -> Value | None:
    inner = parts or ["int"]
    count = [one for one in inner if one not in ("...", "Ellipsis")]
    values = [by_annotation(name, one) for one in count]
    if any(value is None for value in values):
        return None
    found = [value for value in values if value is not None]
    code = ", ".join(value.code for value in found)
    tomls = [value.toml for value in found]
    toml = None if any(one is None for one in tomls) else f"[{', '.join(str(one) for one in tomls)}]"
    if kind == "tuple":
        return Value(f"({code}{',' if len(found) == 1 else ''})", toml)
    return Value(f"[{code}]", toml)


def _without_optional(annotation: str) -> str:
    """Without quotes, ``Optional`` and ``| None``."""
    text = annotation.strip().strip("\"'").strip()
    found = re.fullmatch(r"(?:typing\.)?Optional\[(.+)\]", text)
    text = found[1] if found else text
    parts = [part.strip() for part in text.split("|")]
    return next((part for part in parts if part != "None"), text)


def _split(text: str) -> list[str]:
    """The arguments between brackets: commas inside inner brackets do not count."""
    parts, depth, begin = [], 0, 0
    for i, sign in enumerate(text):
        depth += (sign in "[(") - (sign in "])")
        if sign == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [*parts, text[begin:].strip()] if text.strip() else parts


def _constant(text: str) -> Value | None:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    if isinstance(value, str):
        return Value(f'"{value}"', f'"{value}"')
    toml = str(value).lower() if isinstance(value, (bool, int, float)) else None
    return Value(repr(value), toml)
