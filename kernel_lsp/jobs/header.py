"""From a report to the header of a kernel file."""

from __future__ import annotations

import ast
import dataclasses
import datetime
import re
import shlex
from typing import Any

from kernel_lsp import __version__, claims, class_schema, envelope_sizes, kernel_file, schema
from kernel_lsp.envelope_constants import UNBOUNDED, size_range

MOST_LINES = 25  # of a header, with its opening and closing line
_MOST = 160  # characters of a text
_LINE = 80  # characters of a line's share of a list: less than a line has, since items are not broken up
_KEYS = (
    *("source", "class", "generator", "note", "variant", "pinned", "precision", "fingerprint", "body", "code"),
    *("envelope", *claims.KEYS, "rest"),
)
_ALONE = 60  # characters of the one item of a list that is left
_LEFT_OUT = re.compile(r"and (\d+) more")


def build(source: str, target: schema.Target, report: schema.Report, validated: schema.Validated) -> dict[str, Any]:
    """The header of a new kernel file. ``source`` is ``"samples/rms_norm.py::RMSNorm"``."""
    candidate = validated.candidate
    header: dict[str, Any] = {
        "source": source,
        "class": target.class_name,
        "generator": candidate.generator,
        "note": candidate.note[:_MOST] or None,
        "variant": candidate.variant[:_MOST] or None,
        "pinned": candidate.pinned or None,
        "precision": candidate.precision if candidate.precision != "strict" else None,
        "fingerprint": "",  # here and not further down, where a reader looks for what was found out
        "body": "",
        "code": "",
    }
    if report.specimen is not None:
        body = candidate.source
        header["envelope"] = envelope(report.specimen, candidate.pinned, body)
        further = [_words(envelope(one, False, body, number)) for number, one in enumerate(report.further, 2)]
        header["envelope"] |= {"further": _fitted(further, 3, whole=True) or None}
    return fitted(header | findings(target.fingerprint, report, validated, validated.measurement))


def findings(
    fingerprint: str, report: schema.Report, validated: schema.Validated, measurement: schema.Measurement | None
) -> dict[str, Any]:
    """The part of the header that a validation replaces."""
    lines = claims.lines(validated.verdict, measurement, report.device, __version__, now())
    return {"fingerprint": fingerprint} | lines


def renewed(header: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A header with new findings in place of the old ones; as it was where only the moment is another."""
    kept = {key: value for key, value in header.items() if key not in claims.KEYS}
    made = fitted(kept | found)
    return header if says_the_same(made, header) else made


def says_the_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two headers differ in the moment of the validation alone."""
    return bool(_timeless(one) == _timeless(other))


def fitted(header: dict[str, Any]) -> dict[str, Any]:
    """A header of at most ``MOST_LINES`` lines, whose last entry says where everything else is.

    The longest that this version writes fits once each list of the envelope is one line. Beyond that, keys go that it
    does not write, the last first.
    """
    source = str(header.get("source", ""))
    made = {key: value for key, value in header.items() if key != "rest"}
    made["rest"] = (
        f"every check and limit: the validation report; verdicts over time: kernel-lsp history {shlex.quote(source)}"
    )
    while len(kernel_file.header_lines({**made, "body": "", "code": ""})) > MOST_LINES:
        unknown = [key for key in made if key not in _KEYS]
        if (shorter := _shortened(made.get("envelope"))) is not None:
            made["envelope"] = shorter
        elif unknown:
            del made[unknown[-1]]
        else:
            break
    return made


def _shortened(envelope: Any) -> dict[str, Any] | None:
    """The envelope with an item less in its longest list; None where each has one short item and a count."""
    if not isinstance(envelope, dict):
        return None
    lists = [key for key, value in envelope.items() if isinstance(value, list)]
    for key in sorted(lists, key=lambda key: -len(str(envelope[key]))):
        if (items := _one_fewer([str(item) for item in envelope[key]], whole=key == "further")) is not None:
            return envelope | {key: items}
    return None


def _one_fewer(items: list[str], whole: bool) -> list[str] | None:
    """The items but the last, which is counted; one that is left alone is cut to fit into a line with the count.

    ``whole``: that one is counted, too. A size range that is cut would say another one.
    """
    left_out = _LEFT_OUT.fullmatch(items[-1]) if items else None
    shown = items[:-1] if left_out else items
    if len(shown) > 1 or (shown and whole):
        return [*shown[:-1], f"and {int(left_out[1]) + 1 if left_out else 1} more"]
    if shown and len(shown[0]) > _ALONE:
        return [shown[0][: _ALONE - 1] + "…", *items[1:]]
    return None


def _timeless(header: dict[str, Any]) -> Any:
    """A header without the moment of its validation, as it is read back: without what TOML has no word for."""
    validated = header.get("validated")
    if isinstance(validated, dict):
        header = header | {"validated": {key: value for key, value in validated.items() if key != "at"}}
    return _without_none(header)


def _without_none(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_none(inner) for key, inner in value.items() if inner is not None}


def envelope(specimen: class_schema.Specimen, pinned: bool = False, body: str = "", number: int = 1) -> dict[str, Any]:
    """The shapes, dtypes and sizes of the kernel's envelope, readable: ``x: float32[x_0, 4096]``.

    ``pinned``: at the example's sizes only. ``body``: the kernel file's, of whose envelope ``number`` this is.
    """
    if pinned:
        inputs = [dataclasses.replace(spec, dynamic=[]) for spec in specimen.inputs]
        specimen = dataclasses.replace(specimen, inputs=inputs, dynamic={})
    known = specimen
    specimen, stands = _own_names(specimen)
    conditions = envelope_sizes.conditions(body, number)
    in_envelope = _sizes_in_envelope(specimen, body, number, conditions)
    example: dict[str, int] = {}
    for spec in specimen.inputs:
        example |= {symbol: size for size, symbol in zip(spec.shape, spec.dynamic, strict=False) if symbol}
    sizes = []
    for symbol, limits in specimen.dynamic.items():
        least, greatest = in_envelope.get(symbol, limits) if symbol not in stands else limits
        relation = f" = {stands[symbol]}" if symbol in stands else ""
        of_example = f", {example[symbol]} in the example" if symbol in example else ""
        sizes.append(f"{symbol}{relation}: {size_range(least, greatest)}{of_example}")
    sizes += envelope_sizes.relations(conditions, known, specimen)
    return {
        "inputs": _fitted([f"{s.name}: {s.symbolic_text}" if s.name else s.symbolic_text for s in specimen.inputs], 3),
        "arguments": _fitted(specimen.arguments, 1) or None,
        "sizes": _fitted(sizes, 2) or None,
        "inputs-from": specimen.inputs_from,
        "init": specimen.init_args[:_MOST] or None,
        "training": specimen.training or None,
    }


def _sizes_in_envelope(
    specimen: class_schema.Specimen, body: str, number: int, conditions: list[ast.Compare]
) -> dict[str, tuple[int, int]]:
    """Symbol → the sizes that the envelope takes; none without an envelope."""
    found = envelope_sizes.ranges(conditions)
    result: dict[str, tuple[int, int]] = {}
    for spec in specimen.inputs if envelope_sizes.has_envelope(body, number) else []:
        for place, symbol in enumerate(spec.dynamic):
            if symbol:
                least, greatest = result.get(symbol, (1, UNBOUNDED))
                low, high = found.get(f"{spec.name}.shape[{place}]", (1, UNBOUNDED))
                result[symbol] = max(least, low), min(greatest, high)
    return result


def _own_names(specimen: class_schema.Specimen) -> tuple[class_schema.Specimen, dict[str, str]]:
    """Dimensions that are a sum of others under names of their own, ``x_1`` for ``48 - skip_1``, and what these stand for."""
    taken = {word for symbol in specimen.dynamic for word in re.findall(r"\w+", symbol)}
    names: dict[str, str] = {}
    for spec in specimen.inputs:
        for place, symbol in enumerate(spec.dynamic):
            own = f"{spec.name}_{place}"
            sum_of_others = symbol is not None and re.search(r" [+-] ", symbol)
            if (
                symbol
                and spec.name
                and sum_of_others
                and symbol not in names
                and own.isidentifier()
                and own not in taken
            ):
                names[symbol] = own
                taken.add(own)
    inputs = [
        dataclasses.replace(spec, dynamic=[names.get(symbol or "", symbol) for symbol in spec.dynamic])
        for spec in specimen.inputs
    ]
    dynamic = {names.get(symbol, symbol): limits for symbol, limits in specimen.dynamic.items()}
    renamed = dataclasses.replace(specimen, inputs=inputs, dynamic=dynamic)
    return renamed, {own: symbol for symbol, own in names.items()}


def _words(made: dict[str, Any]) -> str:
    """An envelope as one text: ``x: bfloat16[x_0, 4096]; x_0: 2 or more, 512 in the example``."""
    return "; ".join([*made["inputs"], *(made["arguments"] or []), *(made["sizes"] or [])])


def inputs_words(specimen: class_schema.Specimen) -> str:
    """An example's tensors and other arguments as one text: ``x: bfloat16[512, 4096], causal=True``."""
    tensors = [f"{spec.name}: {spec.text}" if spec.name else spec.text for spec in specimen.inputs]
    return ", ".join([*tensors, *specimen.arguments])


def _fitted(items: list[str], lines: int, whole: bool = False) -> list[str]:
    """As many items as that many lines of the header hold, and how many there are beside these.

    The first is cut to these lines, unless it is to be ``whole``.
    """
    room = lines * _LINE
    for count in range(len(items), -1 if whole else 0, -1):
        rest = [f"and {len(items) - count} more"] if count < len(items) else []
        if (count == 1 and not whole) or sum(len(item) + 4 for item in (*items[:count], *rest)) <= room:
            return [item[:room] for item in items[:count]] + rest
    return []


def now() -> str:
    """ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
