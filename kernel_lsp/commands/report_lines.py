"""The lines below a table of reports: why there is no kernel, what the columns cannot say, what was not measured or checked, the files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_lsp import claims, envelope_sizes, schema, speedup
from kernel_lsp.commands.report_table import ERROR, ERRORS, Column, names, shown
from kernel_lsp.commands.run_jobs import Task
from kernel_lsp.commands.wrapping import PIPED
from kernel_lsp.errors.surface import adapted
from kernel_lsp.jobs import sources
from kernel_lsp.speedup import skipped_text


@dataclass(frozen=True)
class Surroundings:
    """Where the lines below the table stand.

    Attributes:
        width: of a line, in columns of text.
        page: the report page that was written, as the user would name it; "" without one.
        more: the option that shows everything that was not checked.
        files: whether they say where the kernel files are.
    """

    width: int = PIPED
    page: str = ""
    more: str = "--json"
    files: bool = True


def reason_of(task: Task) -> str:
    """Why there is no good kernel; "" where there is one, and where it was not begun with, which has a line for all."""
    if task.skipped:
        return "skipped, since it has no example inputs."
    if task.error is not None:
        return str(task.error)
    validated, report = shown(task), task.report
    if report is None or validated is None:
        return "not reached" if task.began else ""
    if report.regression:
        return report.regression
    return "" if validated.verdict.status == "ok" else validated.verdict.reason or report.why


def footer(tasks: Sequence[Task], columns: Sequence[Column], at: Surroundings | None = None) -> list[str]:
    """Once for all of them: the device, what the ``columns`` cannot say, what was not measured or checked, the files."""
    at = at or Surroundings()
    devices = {_device_text(task.report.device): None for task in tasks if task.report and shown(task)}
    lines = [f"Validated on {device}." for device in devices if device]
    lines += only_where_lines(tasks)
    checks = [errors_line(tasks, at) if {ERROR, ERRORS} & {*columns} else "", skipped_line(tasks)]
    lines += [" ".join(filter(None, checks))] if len(tasks) == 1 else checks
    lines += [f"Not measured: {why.rstrip('.')}." for why in missing(tasks)]
    lines += [limits_line(_limits(tasks), at)]
    lines += not_compiled_lines(tasks)
    return [line for line in [*lines, _files_line(tasks if at.files else [], at.page)] if line]


def only_where_lines(tasks: Sequence[Task]) -> list[str]:
    """The sizes at which kernels are fixed though their modules take others."""
    lines = []
    for task, name in zip(tasks, _prefixes(tasks), strict=True):
        validated = shown(task)
        specimen = task.report.specimen if task.report is not None else None
        if validated is not None and validated.verdict.status in schema.CORRECT:
            text = envelope_sizes.only_where(validated.candidate.source, specimen)
            lines += [f"{name.rstrip()}: {text[0].lower()}{text[1:]}" if name else text] if text else []
    return lines


def skipped_line(tasks: Sequence[Task]) -> str:
    """How many checks verdicts left out, where some did."""
    parts = []
    for task, name in zip(tasks, _prefixes(tasks), strict=True):
        validated = shown(task)
        text = (
            skipped_text(validated.verdict)
            if validated is not None and validated.verdict.status in schema.CORRECT
            else ""
        )
        parts += [f"{name}{text}"] if text else []
    return f"Checks: {'; '.join(parts)} (--thorough makes all of them)." if parts else ""


#: relative error of eager from which on its answer tells little of a kernel's
_USELESS = 0.1


def errors_line(tasks: Sequence[Task], at: Surroundings) -> str:
    """The largest errors, where these were not on the example inputs, of which the table tells: of several classes the worst, in one line."""
    found = []
    for task, name in zip(tasks, names(tasks), strict=True):
        validated = shown(task)
        check = speedup.error_check_words(validated.verdict) if validated is not None else ""
        if validated is None or not check:
            continue
        if len(tasks) == 1:
            return f"Largest error: {_largest(validated.verdict)}, in the check “{check}”."
        error, of_eager = validated.verdict.error or 0.0, validated.verdict.eager_error or 0.0
        useless = f", eager's {of_eager:.2g}" if of_eager > max(_USELESS, error / 3) else ""
        found.append((error, f"{name} {error:.2g} ({check}{useless})"))
    worst = [text for _, text in sorted(found, key=lambda one: -one[0])]
    return fitting("Largest errors in other checks: ", worst, at) if worst else ""


def fitting(beginning: str, parts: Sequence[str], at: Surroundings) -> str:
    """``beginning`` with as many of ``parts`` as fit into one line, one at least, and how many more there are and where."""
    line = ""
    for count in range(len(parts), 0, -1):
        rest = len(parts) - count
        line = f"{beginning}{'; '.join(parts[:count])}" + (f"; {rest} more with {at.more}." if rest else ".")
        if len(line) <= at.width:
            break
    return line


def _largest(verdict: schema.Verdict) -> str:
    """``1.1 (eager's 1.1)``."""
    of_eager = f" (eager's {verdict.eager_error:.2g})" if verdict.eager_error is not None else ""
    return f"{verdict.error:.2g}{of_eager}"


def _prefixes(tasks: Sequence[Task]) -> list[str]:
    """The names with which a line below the table begins what it says of a class; "" for the only one."""
    return [f"{name} " for name in names(tasks)] if len(tasks) > 1 else [""] * len(tasks)


def not_run_line(tasks: Sequence[Task], at: Surroundings) -> str:
    """What the user interrupted the command before; "" for nothing."""
    left = [name for task, name in zip(tasks, names(tasks), strict=True) if not task.began]
    return fitting("Not run: ", left, at) if left else ""


def before_lines(tasks: Sequence[Task]) -> list[str]:
    """What was known of the kernel files before, where it adds to the table: each thing once, with the classes that it is true of."""
    of: dict[str, list[str]] = {}
    for task, name in zip(tasks, names(tasks), strict=True):
        if task.report is not None and task.report.before and not _found_again(task, task.report.before):
            of.setdefault(task.report.before, []).append(name)
    if len(tasks) == 1:
        return [f"The kernel file {before}." for before in of]
    return [f"{', '.join(classes)}: the kernel file {before}." for before, classes in of.items()]


def _found_again(task: Task, before: str) -> bool:
    """Whether this machine found the same of the kernel as it is now, without a time; ``before`` ends with that, in brackets."""
    validated = shown(task)
    if validated is None:
        return False
    return before.endswith(f"({claims.figure(claims.Claim(validated.verdict, validated.measurement))})")


def example_lines(task: Task) -> list[str]:
    """What was found with each example, where there are several, and why a kernel has not all of them."""
    validated = shown(task)
    lines = speedup.example_lines(validated.verdict) if validated is not None else []
    return [f"{names([task])[0]}, {line}" for line in lines]


def recorded_lines(task: Task) -> list[str]:
    """What the speedup over eager is about where recorded shapes were timed, and which were not."""
    validated = shown(task)
    measurement = validated.measurement if validated is not None else None
    if measurement is None or measurement.recorded is None:
        return []
    name, lines = names([task])[0], []
    ratio, words = speedup.speedups(measurement)[0], speedup.mix_words(measurement)
    if ratio and words:
        share = speedup.mix_share(measurement)
        part = f" ({share:.0%} of its time there)".replace("%", " %") if share else ""
        lines.append(f"{name}: {speedup.factor(ratio)} {words}{part}; the times are at the example's shapes.")
    if measurement.recorded.left_out:
        left_out = "; ".join(measurement.recorded.left_out)
        lines.append(f"{name}: recorded from {measurement.recorded.source} and not timed: {left_out}.")
    return lines


def source_lines(task: Task) -> list[str]:
    """What each source came up with, where a language model was among them, or should have been."""
    report = task.report
    if report is None or not report.of_models:
        return []
    told = str(task.error).rstrip(".") if task.error else None  # said already
    lines = [f"{part}." for part in sources.words(report) if not (told and told in part)]
    for source in report.sources:
        if source.model:
            rate = f", {source.tokens_per_second:.0f} tokens/s" if source.tokens_per_second else ""
            seconds = ", ".join(f"{stage} {time:.1f} s" for stage, time in source.seconds.items())
            lines.append(f"{source.model} on {source.device}: {source.tokens} tokens{rate}; {seconds}.")
    return lines


#: limits that many verdicts have, and how the table says them
_BRIEF = {
    "races between program instances": "races",
    "precision of tf32 products and of fast approximations": "TF32 and fast math",
    "sizes of the example inputs": "the example's sizes",
    "the strides of its output": "output strides",
    "the strides of its output for inputs in another memory layout": "output strides",
    "time": "",  # what was not measured has a line of its own
    schema.NOT_COMPILED.removesuffix(": "): "",  # so has this
}


def _limits(tasks: Sequence[Task]) -> list[str]:
    """The limits that all verdicts have, after that about indices with the classes that have it, where these are not all.

    Of other limits that some classes alone have nothing is said; an index out of range may end the process.
    """
    of = [
        (name, entry.verdict.limits)
        for task, name in zip(tasks, names(tasks), strict=True)
        if (entry := shown(task)) is not None
    ]
    common = [limit for limit in of[0][1] if all(limit in limits for _, limits in of)] if of else []
    reading = [name for name, limits in of if any(limit.startswith(schema.INDICES) for limit in limits)]
    if not reading or any(limit.startswith(schema.INDICES) for limit in common):
        return common
    where = ", ".join(reading) if len(reading) < 4 else f"{len(reading)} classes"
    return [f"{schema.INDICES} in {where}", *common]


def limits_line(limits: Sequence[str], at: Surroundings) -> str:
    """``Not checked: races; the example's sizes; 2 more with --json.``: what fits into one line, each thing once."""
    brief = list(dict.fromkeys(text for limit in limits if (text := _brief(limit))))
    return fitting("Not checked: ", brief, at) if brief else ""


def _brief(limit: str) -> str:
    """A limit without its reasons, which the report and the JSON document have; "" for what is said elsewhere."""
    text = re.sub(r" \([^()]*\)", "", limit)
    return _BRIEF.get(found, found) if (found := text.partition(": ")[0]) in _BRIEF else text


def not_compiled_lines(tasks: Sequence[Task]) -> list[str]:
    """Why kernels have no registers though they were validated without a GPU: each reason once, with the classes."""
    of: dict[str, list[str]] = {}
    for task, prefix in zip(tasks, _prefixes(tasks), strict=True):
        validated = shown(task)
        for limit in validated.verdict.limits if validated is not None else []:
            if limit.startswith(schema.NOT_COMPILED):
                of.setdefault(limit.removeprefix(schema.NOT_COMPILED).rstrip("."), []).append(prefix.strip())
    lines = []
    for why, classes in of.items():
        which = f" ({', '.join(classes)})" if all(classes) else ""
        lines.append(f"Not compiled for a GPU{which}: {why}.")
    return lines


def _files_line(tasks: Sequence[Task], page: str) -> str:
    """Where the kernel files are, and the report page if there is one."""
    files = [os.path.relpath(task.report.file) for task in tasks if task.report is not None and task.report.file]
    parts = []
    if files and len(tasks) == 1:
        parts.append(f"The kernel is {files[0]}.")
    elif files:
        folders = ", ".join(dict.fromkeys(f"{os.path.dirname(file) or '.'}/" for file in files))
        parts.append(f"{len(files)} kernel file{'s' if len(files) != 1 else ''} in {folders}.")
    return " ".join([*parts, *([f"The report is {page}."] if page else [])])


def missing(tasks: Sequence[Task]) -> list[str]:
    """Why something was not measured, each reason once, in the words of the command line."""
    validated = [entry for task in tasks if (entry := shown(task)) is not None]
    measured = [entry.measurement for entry in validated if entry.measurement is not None]
    return list(
        dict.fromkeys(adapted(text) for one in measured for text in (one.missing, one.compiled_missing) if text)
    )


def _device_text(device: schema.Device | None) -> str:
    if device is None:
        return ""
    versions = [f"{name} {version}" for name in ("torch", "triton") if (version := getattr(device, name))]
    return ", ".join([device.name, *versions])
