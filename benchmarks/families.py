"""Speedups over torch.compile by family of operators, from the kept records of KernelBench's levels 1 to 3, beside the goal of each family.

    python benchmarks/families.py [--results benchmarks/results/kernelbench-nvidia-h100-80gb-hbm3.jsonl] [--out FILE]

No GPU and no copy of KernelBench are needed. Writes benchmarks/results/families-nvidia-h100-80gb-hbm3.md. Each problem is in one family; the tails of
transposed convolutions, which have a goal of their own, are listed once more. How a problem gets there (``family``), from what its record has of the exported
module, and from its file's name where that does not tell:

- Levels 1 and 2 go by the product or convolution among the operators. Convolutions in two dimensions are split by the input's channels (the first input's second
  dimension), those that the file calls depthwise are apart. A transposed one is strided where the result is at least 1.5 times as large as the input in one
  dimension; that holds for level 1 alone, since in level 2 pooling may follow. Those of level 2 that have a stride of one are named here by number.
- A product is large where it is of matrices and rows, columns and what is summed are at least 1024 each, by the shapes and the operations; else it is thin or batched.
- What has none of these, of level 1: attention, pooling and scans by the operator, losses and norms by the name, reductions by the operator; the rest is elementwise.
- Level 3: recurrent layers, transformers, attention and Mamba-2 by the name. A network waits for launches where eager, as launched, takes at least 1.5 times its
  replay as a CUDA graph; where no such replay was timed, it does not count as waiting. What remains has convolutions, or products alone.

Speedups are torch.compile's median over the kernel's. *Without collapsed*: without the problems whose kernel computes a sum before a linear operation
(docs/evaluation.md). A problem that was not timed against torch.compile is counted in no figure.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from kernel_lsp import schema  # noqa: E402
from kernel_lsp.evaluation import outcomes, results_file  # noqa: E402
from kernel_lsp.evaluation.records import Record  # noqa: E402
from kernel_lsp.evaluation.scores import geomean, latest  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "kernelbench-nvidia-h100-80gb-hbm3.jsonl"
OUT = ROOT / "benchmarks" / "results" / "families-nvidia-h100-80gb-hbm3.md"

_CONV2D, _FEW_CHANNELS = "convolution, 2-d, 32 channels or more", "convolution, 2-d, fewer channels"
_CONV3D, _CONV1D = "convolution, 3-d", "convolution, 1-d"
_NETWORKS = "level 3: networks and blocks of convolutions"
_STRIDED, _DENSE = "transposed convolution, strided", "transposed convolution, {}-d, stride 1"
_TAILS = "of the transposed ones, level 2 (whole tails)"
_LARGE, _THIN = "products, large, level {}", "products, thin and batched, level {}"
_WAITING, _TRANSFORMERS = "level 3: networks that wait for launches", "level 3: other transformers and MLPs as networks"
_RECURRENT, _DEPTHWISE = "recurrent layers", "depthwise and separable convolution"
_NORMS, _REDUCTIONS = "norms", "reductions over a dimension"
_ATTENTION, _ATTENTION3 = "attention, level 1", "attention, level 3"
_OTHER, _CHUNKS, _ELEMENTWISE = "pooling, scans, losses", "chunk scans (Mamba-2)", "elementwise, softmax"

#: Family → how many times as fast as torch.compile its kernels were to be, at the least; None: no goal of its own.
GOALS: dict[str, float | None] = {
    _CONV2D: 1.4,
    _FEW_CHANNELS: 1.8,
    _CONV3D: 2.8,
    _CONV1D: None,
    _NETWORKS: 1.4,
    _STRIDED: 3.0,
    _DENSE.format(3): 2.4,
    _DENSE.format(2): 1.2,
    _DENSE.format(1): None,
    _TAILS: 5.0,
    _LARGE.format(1): 4.0,
    _LARGE.format(2): 4.0,
    _LARGE.format(3): 4.0,
    _THIN.format(1): 1.3,
    _THIN.format(2): 1.3,
    _THIN.format(3): 1.3,
    _WAITING: 3.0,
    _TRANSFORMERS: None,
    _RECURRENT: 10.0,
    _DEPTHWISE: 2.5,
    _NORMS: 1.0,
    _REDUCTIONS: 1.0,
    _ATTENTION: 1.5,
    _ATTENTION3: 1.5,
    _OTHER: 1.0,
    _CHUNKS: 1.0,
    _ELEMENTWISE: None,
}

#: Of level 2's transposed convolutions those with a stride of one, by number: a record has only what the tail makes of their result.
_STRIDE_ONE = {10, 11, 13, 19, 42, 61, 77}
_CHANNELS, _LEAST_SIZE, _TIMES_LARGER, _TIMES_REPLAY = 32, 1024, 1.5, 1.5
_PRODUCTS = {"matmul", "bmm", "mm", "linear", "einsum"}
_OF_ONE_DIMENSION = {"sum", "mean", "max", "min", "argmax", "argmin"}
_FARTHEST = 15
_POOLS_AND_SCANS = re.compile(r"(max|avg)_pool\dd|cumsum|cumprod")


@dataclass
class Row:
    """One timed problem."""

    level: int
    number: int
    family: str
    speedup: float  # over torch.compile
    collapsed: bool
    over_eager: float
    kernel: float  # microseconds, as torch.compile's
    compiled: float
    #: microseconds that its bytes or operations take at the rates that were measured on the device
    roofline: float | None

    @property
    def tail(self) -> bool:
        """Whether it is a whole tail of a transposed convolution, which has a goal of its own."""
        return self.level == 2 and self.family.startswith("transposed")


def family(record: Record, report: schema.Report) -> str:
    """The family of a record's problem: a key of ``GOALS``."""
    name, specimen = record.problem.name, report.specimen
    if specimen is None:
        raise ValueError(f"{record.problem.id}: the record does not say which operators it has")
    ops = {op.removeprefix("aten.") for op in specimen.ops}
    if record.problem.level == 3:
        return _of_level_3(name, ops, report)
    convolution = next((op for op in sorted(ops) if re.fullmatch(r"conv(_transpose)?\dd", op)), "")
    taken = specimen.inputs[0].shape
    if "transpose" in convolution:
        return _STRIDED if _strided(record, specimen) else _DENSE.format(convolution[-2])
    if "depthwise" in name.lower():
        return _DEPTHWISE
    if convolution == "conv2d":
        return _CONV2D if taken[1] >= _CHANNELS else _FEW_CHANNELS
    if convolution:
        return _CONV3D if convolution == "conv3d" else _CONV1D
    if ops & _PRODUCTS:
        return _product(specimen, record.problem.level)
    if "scaled_dot_product_attention" in ops:
        return _ATTENTION
    if "Loss" in name or any(map(_POOLS_AND_SCANS.fullmatch, ops)):
        return _OTHER
    if "Norm" in name:
        return _NORMS
    return _REDUCTIONS if ops <= _OF_ONE_DIMENSION else _ELEMENTWISE


def _of_level_3(name: str, ops: set[str], report: schema.Report) -> str:
    if re.search("RNN|LSTM|GRU", name):
        return _RECURRENT
    if _waits(report):
        return _WAITING
    if re.search("Transformer|Swin", name):
        return _TRANSFORMERS
    if re.search("Attention|GPT", name):
        return _ATTENTION3
    if "Mamba" in name:
        return _CHUNKS
    if any(op.startswith("conv") for op in ops):
        return _NETWORKS
    assert report.specimen is not None
    return _product(report.specimen, 3)


def _strided(record: Record, specimen: schema.Specimen) -> bool:
    if record.problem.level != 1:
        return record.problem.number not in _STRIDE_ONE
    sizes = zip(specimen.inputs[0].shape[2:], specimen.outputs[0].shape[2:], strict=True)
    return any(after >= _TIMES_LARGER * before for before, after in sizes)


def _product(specimen: schema.Specimen, level: int | None) -> str:
    """By rows, columns and what is summed. Of a chain of products, the columns are those of all of them."""
    taken, given = specimen.inputs[0].shape, specimen.outputs[0].shape
    if level == 1:  # the result is the product, and either operand may be transposed
        sizes = [*given, (specimen.flops or 0) / 2 / math.prod(given)]
    else:
        sizes = [*taken, (specimen.flops or 0) / 2 / math.prod(taken)]
    large = len(taken) == 2 and min(sizes) >= _LEAST_SIZE
    return (_LARGE if large else _THIN).format(level)


def _waits(report: schema.Report) -> bool:
    """Whether eager spends a third of its time or more between kernels."""
    validated = outcomes.shown(report)
    shape = outcomes.first_shape(validated) if validated is not None else None
    if shape is None or shape.eager is None or shape.eager_graph is None:
        return False
    return shape.eager.median >= _TIMES_REPLAY * shape.eager_graph.median


def rows_of(records: Sequence[Record]) -> list[Row]:
    """The problems that are correct and timed against torch.compile, in the order of the suite."""
    found = []
    for record in latest(records):
        outcome, problem = outcomes.of(record), record.problem
        speedup = outcome.speedups.get("default")
        report = record.read_report() if speedup is not None else None
        if speedup is None or report is None or problem.level not in (1, 2, 3):
            continue
        collapsed, validated = outcome.trait == outcomes.COLLAPSES, outcomes.shown(report)
        shape = outcomes.first_shape(validated) if validated is not None else None
        assert shape is not None and outcome.kernel is not None
        times = (outcome.speedups["eager"], outcome.kernel, outcome.baselines["default"], shape.roofline)
        found.append(Row(problem.level, problem.number or 0, family(record, report), speedup, collapsed, *times))
    return found


def farthest(rows: Sequence[Row]) -> list[tuple[Row, str, float]]:
    """The problems that reach the least part of their family's goal, with the family and the goal; collapsed ones are left out.

    That of a level 2 problem with a transposed convolution is the tails'.
    """
    found = []
    for row in rows:
        name = _TAILS if row.tail else row.family
        goal = GOALS[name]
        if goal is not None and not row.collapsed and row.speedup < goal:
            found.append((row, name, goal))
    return sorted(found, key=lambda one: one[0].speedup / one[2])[:_FARTHEST]


# -- the table --------------------------------------------------------------------------------------------------------


def table(rows: Sequence[Row], device: str, problems: int) -> str:
    """The whole file. ``problems``: how many there are, timed or not."""
    lines = [
        f"# KernelBench by family of operators on {device}",
        "",
        "Written by `python benchmarks/families.py`, whose docstring says how a problem gets into a family, from the records in `kernelbench-nvidia-h100-80gb-hbm3.jsonl`.",
        "Times as fast as torch.compile; the goal is the least that was wanted. *At the goal*: how many problems reach it; the last column has the others. *Without collapsed*: without those whose kernel",
        "computes a sum before a linear operation, their number in parentheses ([docs/evaluation.md](../../docs/evaluation.md#how-to-read-the-tables)). "
        f"{len(rows)} of {problems} problems are timed against torch.compile.",
        "",
        "| family | problems | goal | geomean | without collapsed | least | at the goal | below the goal |",
        "| --- | --: | --: | --: | --: | --: | --: | --- |",
    ]
    for name, goal in GOALS.items():
        own = [row for row in rows if row.family == name]
        if name == _TAILS:
            own = [row for row in rows if row.tail]
        if own:
            lines.append(_line(name, goal, own))
    lines.append(_line("all", None, rows))
    lines += ["", *_over_the_better(rows), "", *_farthest_table(rows)]
    return "\n".join(lines) + "\n"


def _over_the_better(rows: Sequence[Row]) -> list[str]:
    """Where torch.compile is slower than eager, a user has eager."""
    better = {level: [min(row.speedup, row.over_eager) for row in rows if row.level == level] for level in (1, 2, 3)}
    by_level = ", ".join(f"level {level} {geomean(of):.2f}×" for level, of in better.items() if of)
    every = [speedup for of in better.values() for speedup in of]
    mean = geomean(every)
    return [
        f"Over the faster of eager and torch.compile: {'–' if mean is None else f'{mean:.2f}×'} ({by_level}), and {sum(one > 1 for one in every)} of {len(every)} problems are faster than both.",
        f"{sum(1 < row.speedup < 1.01 for row in rows)} of those that are faster than torch.compile are so by less than 1 %.",
    ]


def _farthest_table(rows: Sequence[Row]) -> list[str]:
    lines = [
        f"## The {_FARTHEST} farthest from their family's goal",
        "",
        "Microseconds. *Roofline*: what the bytes, read and written once, or the operations take at the rates that were measured on the device; a float32 product's operations count three times.",
        "",
        "| problem | family | goal | reached | kernel | torch.compile | roofline |",
        "| --- | --- | --: | --: | --: | --: | --: |",
    ]
    for row, name, goal in farthest(rows):
        roofline = "–" if row.roofline is None else f"{row.roofline:.0f}"
        lines.append(
            f"| level {row.level} #{row.number} | {name} | {goal:g}× | {row.speedup:.2f}× | {row.kernel:.0f} | {row.compiled:.0f} | {roofline} |"
        )
    return lines


def _line(name: str, goal: float | None, rows: Sequence[Row]) -> str:
    plain = [row.speedup for row in rows if not row.collapsed]
    mean, without = geomean([row.speedup for row in rows]), geomean(plain)
    short = [row for row in rows if goal is not None and row.speedup < goal]
    cells = [
        name,
        str(len(rows)),
        "–" if goal is None else f"{goal:g}×",
        "–" if mean is None else f"{mean:.2f}×",
        "–" if without is None else f"{without:.2f}× ({len(plain)})",
        f"{min((row.speedup for row in rows), default=0):.2f}×",
        "–" if goal is None else str(len(rows) - len(short)),
        _listed(short),
    ]
    return f"| {' | '.join(cells)} |"


def _listed(rows: Sequence[Row]) -> str:
    """``level 1: #76 0.96; level 2: #3 1.38, #34 1.44``: the least first."""
    parts = []
    for level in sorted({row.level for row in rows}):
        own = sorted((row for row in rows if row.level == level), key=lambda row: row.speedup)
        parts.append(f"level {level}: " + ", ".join(f"#{row.number} {row.speedup:.2f}" for row in own))
    return "; ".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    records = results_file.read(options.results).records
    devices = sorted({record.versions.get("device", "") for record in records})
    text = table(rows_of(records), ", ".join(devices), len(latest(records)))
    options.out.write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
