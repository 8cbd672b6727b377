"""What a trial may say, and how much of it: every answer is looked through before anything is done with it.

The trial's process runs the candidate, so its words are the candidate's. They can speak against it (a failure, memory
that it wrote to) and never for it: there is no status here that is correct, and results are compared, not believed.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from typing import Any

from kernel_lsp.validation.failures import Failure

#: statuses that a trial may report of its candidate
FAILURES = frozenset(
    ["rejected", "not-drop-in", "wrong", "cheating", "compile-error", "crashed", "out-of-memory", "not-interpretable"]
)
#: characters of a text, entries of a list, calls and launches that are believed
_TEXT, _MANY, _COUNT = 400, 100_000, 10_000_000
#: compiled kernels and limits of a report, and characters of what a compiler says
_KERNELS, _LIMITS, _REASON = 500, 50, 1000


def cleaned(text: Any, limit: int = _TEXT) -> str:
    """One line without control and formatting characters (no terminal escapes, no reversed text), cut to ``limit``.

    Raises:
        ValueError: it is no text.
    """
    if not isinstance(text, str):
        raise ValueError(f"a {type(text).__name__} where a text belongs")
    kept = "".join(" " if unicodedata.category(c)[0] == "Z" else c for c in text[: 4 * limit] if _printable(c))
    kept = " ".join(kept.split())
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def _printable(character: str) -> bool:
    return character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")


def failure(said: Any) -> Failure:
    """The failure that a trial reports.

    Raises:
        ValueError: it is none that a trial can report.
    """
    if not isinstance(said, dict) or said.get("status") not in FAILURES:
        raise ValueError("a failure of no known kind")
    line = said.get("line")
    if line is not None:
        line = _count(line)
    return Failure(said["status"], cleaned(said.get("reason", "")), line)


def compiled(said: Any) -> dict[str, Any]:
    """A report of the process that compiles a candidate: kernels, error and limits.

    Raises:
        ValueError: it is none, or has parts that are not of their kind.
    """
    if not isinstance(said, dict) or said.keys() != {"kernels", "error", "limits"}:
        raise ValueError("a report that is none")
    return {
        "kernels": _list(_kernel)(said["kernels"])[:_KERNELS],
        "error": _optional(_fault)(said["error"]),
        "limits": _list(cleaned)(said["limits"])[:_LIMITS],
    }


def checked(verb: str, said: dict[str, Any]) -> dict[str, Any]:
    """The parts of an answer to ``verb`` that belong there, each of its kind and size.

    Raises:
        ValueError: a part does not belong there, or is not of its kind or size.
    """
    kinds = _ANSWERS[verb]
    if strange := sorted(map(str, said.keys() - kinds.keys() - _OF_TENSORS)):
        raise ValueError(f"an answer to {verb!r} with {cleaned(strange[0], 40)!r}")
    found = {key: kind(said[key]) for key, kind in kinds.items() if key in said}
    return found | {key: said[key] for key in _OF_TENSORS & said.keys()}


#: looked at where the results are made of them
_OF_TENSORS = frozenset(["described", "metas"])


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _COUNT:
        raise ValueError("a number that counts nothing")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise ValueError("a number that is none")
    return float(value)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("a flag that is none")
    return value


def _list(of: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def kind(value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) > _MANY:
            raise ValueError("a list that is none, or too long")
        return [of(item) for item in value]

    return kind


def _map(of: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    def kind(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or len(value) > _MANY:
            raise ValueError("a map that is none, or too large")
        return {cleaned(key): of(item) for key, item in value.items()}

    return kind


def _optional(of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else of(value)


def _entry(value: Any) -> list[Any]:
    """A name, a shape and a dtype, of a state_dict."""
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[0], str):
        raise ValueError("an entry of a state_dict that is none")
    return [value[0][:4096], _list(_count_of_elements)(value[1]), cleaned(value[2], 40)]


def _count_of_elements(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 48:
        raise ValueError("a size that is none")
    return value


def _timing(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != {"median", "low", "high", "runs"}:
        raise ValueError("a time that is none")
    return {key: _count(value[key]) if key == "runs" else _number(value[key]) for key in value}


def _span(value: Any) -> tuple[str, float, float]:
    """A kernel's name, the microsecond at which it began, and those that it took."""
    if not isinstance(value, list) or len(value) != 3:
        raise ValueError("a span that is none")
    return cleaned(value[0]), _number(value[1]), _number(value[2])


def _fault(value: Any) -> dict[str, Any]:
    """What a compiler says against a candidate, and at which line."""
    if not isinstance(value, dict) or value.keys() != {"reason", "line"}:
        raise ValueError("a fault that is none")
    return {"reason": cleaned(value["reason"], _REASON), "line": _optional(_count)(value["line"])}


def _kernel(value: Any) -> dict[str, Any]:
    kinds: dict[str, Callable[[Any], Any]] = {"name": cleaned, "target": cleaned}
    kinds |= dict.fromkeys(["registers", "spills", "shared", "num_warps"], _optional(_count))
    if not isinstance(value, dict) or value.keys() - kinds.keys():
        raise ValueError("a compiled kernel that is none")
    return {key: kinds[key](item) for key, item in value.items()}


_TIMES: dict[str, Callable[[Any], Any]] = dict.fromkeys(["eager", "kernel", "kernel_graph", "eager_graph"], _timing)
_CHANGED: dict[str, Callable[[Any], Any]] = {"changed": _list(cleaned)}
_ANSWERS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "load": {"state": _list(_entry), **_CHANGED},
    "state": {},
    "restore": {},
    "buffers": {},
    "copy": {"copied": _flag},
    "original_again": {},
    "to": {},
    "assign": {"assigned": _flag},
    "call": {
        "requires": _list(_flag),
        "lazy": _list(cleaned),
        "launches": _count,
        "envelope": _count,
        "joined": _flag,
        "swallowed": _list(cleaned),
        "operators": _map(_list(_count_of_elements)),
        "alone": _list(_list(_count_of_elements)),
        "mutated": _list(_count),
        "damaged": _list(cleaned),
        "autotuned": _map(_count),
        "aliases": _list(_list(_count)),
        "attributes": _map(_list(_count)),
        "kept": _flag,
        "instances": _list(_count_of_elements),
        "random": _flag,
        **_CHANGED,
    },
    "precompile": {},
    "precompile_variants": {"compiled": _count},
    "kernels": {"kernels": _list(_kernel)},
    "keep": {},
    "choose": {},
    "run": {},
    "replay": {},
    "time": {**_TIMES, **_CHANGED},
    "time_variants": {
        "timings": _map(_timing),
        "fastest": cleaned,
        "graphs": _map(_timing),
        **_CHANGED,
    },
    "profile": {"calls": _list(_list(_span)), "missing": cleaned},
    "time_rounds": {"rounds": _map(_list(_number)), **_CHANGED},
}
