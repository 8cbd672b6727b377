"""What a program called its modules with, as a table for people."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernel_lsp import kernel_file
from kernel_lsp.commands.wrapping import table_width
from kernel_lsp.errors import NotAKernelFile, UserError
from kernel_lsp.recording import calls_left_to_eager, examples
from kernel_lsp.recording.records import ClassRecord, Run, Shape
from kernel_lsp.settings import load

_MOST_ROWS = 30


def print_run(run: Run) -> None:
    """Print the table and what it leaves out."""
    console = Console(stderr=True, width=table_width(sys.stderr))
    console.print(table_of(run))
    for line in footer(run):
        console.print(escape(line), highlight=False, style="dim")


def table_of(run: Run) -> Table:
    """One row a class, the one with the most time first."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("class", overflow="fold")
    for name in ("calls", "shapes", "µs a call", "share of\nforward"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("most of the time in", overflow="fold")
    table.add_column("kernel", no_wrap=True)
    table.add_column("outside its envelope", overflow="fold")
    for record in run.classes[:_MOST_ROWS]:
        table.add_row(*row(run, record))
    return table


def row(run: Run, record: ClassRecord) -> list[str]:
    """The cells of one class."""
    share = record.seconds / run.forward_seconds if run.forward_seconds else None
    times = examples.distinct(record.shapes)
    shapes = f"{len(times)}+" if record.others else str(len(times))
    each = record.seconds / record.calls * 1e6 if record.calls else 0.0
    first = max(times, key=lambda text: times[text], default="–")
    kernel, missed = kernel_words(record)
    return [
        escape(record.name),
        f"{record.calls:,}",
        shapes,
        f"{each:.1f}",
        examples.percent(share) if share is not None else "–",
        escape(first),
        kernel,
        escape(missed),
    ]


def kernel_words(record: ClassRecord) -> tuple[str, str]:
    """Whether there is a kernel, and which calls it left, or would leave, to eager."""
    header = _header(record)
    if header is None and not record.kernel_calls:
        return "no", "–"
    used = "in use" if record.kernel_calls else "not used"
    if record.kernel_calls:
        missed = sum(shape.outside for shape in record.shapes)
        share = missed / record.kernel_calls
    else:
        missed = sum(shape.calls for shape in record.shapes if calls_left_to_eager.why_outside(header or {}, shape))
        share = missed / max(sum(shape.calls for shape in record.shapes), 1)
    if not missed:
        return used, "none"
    return used, f"{examples.percent(share)} of the calls{_reasons(header or {}, record.shapes)}"


def _reasons(header: dict[str, object], shapes: list[Shape]) -> str:
    reasons = {reason: None for shape in shapes if (reason := calls_left_to_eager.why_outside(header, shape))}
    few = list(reasons)[:2]
    return f": {', '.join(few)}{', …' if len(reasons) > 2 else ''}" if few else ""


def _header(record: ClassRecord) -> dict[str, object] | None:
    """The header of a class's kernel file; None where there is none."""
    source = Path(record.file)
    settings, _ = load(source)
    path = kernel_file.find_kernel(source, record.name, settings.kernel_folder)
    if not path.is_file():
        return None
    try:
        return kernel_file.read(path).header
    except (NotAKernelFile, UserError):
        return None


def footer(run: Run) -> list[str]:
    """What was measured, what was not seen, and which classes cannot be examples."""
    clock = "CUDA events" if run.on_gpu else "the host's clock"
    lines = [
        f"{run.script}: {run.seconds:.1f} s, of these {run.forward_seconds:.2f} s in forward (by {clock}, medians times calls)."
    ]
    if len(run.classes) > _MOST_ROWS:
        lines.append(f"{len(run.classes) - _MOST_ROWS} more classes are in the recording.")
    if run.compiled:
        lines.append(
            "Modules inside compiled ones are not called one by one, and not recorded: record once without torch.compile for them."
        )
    for record in run.classes[:_MOST_ROWS]:
        why = examples.why_not_usable(examples.Recorded(record.name, record.shapes))
        if why:
            inside = Path(record.file).is_relative_to(run.root)
            where = os.path.basename(record.file) if inside else "a file that imports it"
            lines.append(
                f"{record.name} gets no example inputs from this: {why}. Add get_inputs_{record.name.replace('.', '_')}() "
                f"and get_init_inputs_{record.name.replace('.', '_')}() to {where}."
            )
    return lines
