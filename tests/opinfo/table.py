"""The table of what became of PyTorch's operators, as Markdown."""

from __future__ import annotations

import platform
from collections import Counter
from typing import Any

_HEAD = """\
# PyTorch's operators

<!-- Written by `make test-opinfo{flags}`. -->

The sample inputs of `torch.testing._internal.common_methods_invocations.op_db`{part} (torch {torch}, triton {triton}, Python {python}; float32,
or int64 or bool where an operator takes nothing else), each wrapped in a module, exported, synthesized, run under Triton's interpreter and
compared with eager in float64; also with NaN and infinity put in, with strides, with expanded inputs, and at other sizes
that the kernel's class takes.

| samples | |
| --- | --- |
{samples}

{right} of {all} operators are lowered for one sample at least, and right wherever they are; {whole} of them for every sample.

"""
_WORDS = {
    "right": "right",
    "wrong": "wrong",
    "crash": "crash",
    "envelope": "lost to an envelope that is too wide",
    "partly": "right, an operator among them stays with torch",
    "not lowered": "not lowered",
    "eager": "run eager (empty tensors, outside the envelope), or eager refuses them",
}
_BAD = ("wrong", "crash", "envelope")


def text(rows: list[dict[str, Any]], most: int) -> str:
    import torch
    import triton

    by_operator: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_operator.setdefault(f"{row['name']} {row['variant']}".strip(), []).append(row)
    kinds = Counter(row["kind"] for row in rows)
    found = {name: Counter(row["kind"] for row in own) for name, own in by_operator.items()}
    right = [name for name, own in found.items() if own["right"] and not any(own[kind] for kind in _BAD)]
    whole = [name for name in right if not found[name]["not lowered"] and not found[name]["partly"]]
    part = (
        ""
        if max(Counter((r["name"], r["variant"]) for r in rows).values()) > most or most >= 10**6
        else f", up to {most} each"
    )
    result = _HEAD.format(
        part=part,
        flags=f' OPINFO_FLAGS="--most {most}"' if most < 10**6 else "",
        torch=torch.__version__.partition("+")[0],
        triton=triton.__version__,
        python=platform.python_version(),
        samples="\n".join(f"| {words} | {kinds[kind]} |" for kind, words in _WORDS.items()),
        right=len(right),
        all=len(found),
        whole=len(whole),
    )
    bad = [row for row in rows if row["kind"] in _BAD]
    if bad:
        result += "## Not right\n\n| operator | sample | inputs | |\n| --- | --- | --- | --- |\n"
        for row in bad:
            detail = row["detail"].replace("|", "\\|")
            name = f"{row['name']} {row['variant']}".strip()
            result += f"| {name} | {row['index']} | {row['inputs']} | {row['kind']}: {detail} |\n"
        result += "\n"
    result += "## Right wherever lowered\n\n"
    result += ", ".join(f"`{name}`" + ("" if name in whole else " (in part)") for name in right) + "\n\n"
    rest = [name for name, own in found.items() if name not in right and own["not lowered"] + own["partly"]]
    return (
        result
        + "## Not lowered\n\n"
        + ", ".join(f"`{name}`" for name in rest if not any(found[name][k] for k in _BAD))
        + "\n"
    )
