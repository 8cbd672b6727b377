"""From a kernel file and the report of its validation to findings."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Collection
from pathlib import Path

from kernel_lsp import kernel_file, naming, schema
from kernel_lsp.analysis import fingerprint, module_classes, read_file
from kernel_lsp.checking.records import CANNOT_VALIDATE, CODES, OUTDATED, Checked, Finding, Level, Regression
from kernel_lsp.errors import ClassNotFound, UserError
from kernel_lsp.errors.surface import adapted

_LEVELS: dict[str, Level] = {"wrong": "warning", "stale": "warning", "regressed": "warning", "slower": "note"}


def checked_of(
    kernel: Path, report: schema.Report | None, error: UserError | None, fail_on: Collection[str]
) -> Checked:
    """What is to be said of a kernel file after its validation.

    Args:
        report: None where the validation did not begin.
        fail_on: of ``records.CODES``; findings of these kinds fail.
    """
    one = Checked(Path(os.path.abspath(kernel)))
    parsed = _locate(one)
    validated = report.candidates[0] if report is not None and report.candidates else None
    one.seconds = report.seconds.get("report") if report is not None else None
    if error is not None or validated is None or report is None:
        why = str(error) if error is not None else "It was not reached: the command was interrupted."
        one.findings.append(Finding(CANNOT_VALIDATE, "error", why, True))
        return one

    verdict, measurement = validated.verdict, validated.measurement
    one.status = verdict.status
    if parsed is not None and verdict.line:
        one.kernel_line = parsed.body_line + verdict.line
    if report.regression:
        one.regression = Regression(report.regression, measurement.comparison if measurement is not None else None)
    if measurement is None or not any(shape.kernel for shape in measurement.shapes):
        one.not_measured = adapted((measurement.missing if measurement else "") or "the kernel was not timed").rstrip(
            "."
        )
    elif measurement.comparison is not None:
        one.not_measured = adapted(measurement.comparison.missing).rstrip(".")

    def add(kind: str, message: str, action: str = "", code: str = "") -> None:
        fails = kind in fail_on
        level: Level = "error" if fails else _LEVELS[kind]
        one.findings.append(Finding(code or CODES[kind], level, message, fails, action))

    name = naming.kernel_class(one.class_name)
    if verdict.status == "outdated":
        add("wrong", f"{name} is out of date: {_sentence(adapted(verdict.reason))}", _again(one), OUTDATED)
    elif verdict.status not in schema.CORRECT:
        add("wrong", f"{name} ({verdict.status}): {_sentence(adapted(verdict.reason))}", _again(one))
    if one.stale and verdict.status != "outdated":  # which says so
        changed = f"{one.class_name}, or something it uses, changed since its kernel was validated."
        add("stale", changed, _record(one) if verdict.status in schema.CORRECT else "")
    if one.regression is not None:
        add("regressed", f"{name}: {_sentence(one.regression.message)}")
    if verdict.status == "slower":
        add("slower", f"{name}: {_sentence(adapted(verdict.reason))}")
    return one


def _locate(one: Checked) -> kernel_file.KernelFile | None:
    """Fill in where the class is and whether it changed; what cannot be read is left out."""
    try:
        parsed = kernel_file.read(one.kernel)
        one.class_name = parsed.class_name
        one.source = kernel_file.find_source(one.kernel, parsed)
    except UserError:
        return None
    text = read_file(one.source)
    if text is None:
        return parsed
    with contextlib.suppress(ClassNotFound):  # the validation says so
        one.stale = fingerprint(text, one.source, one.class_name) != parsed.fingerprint
    found = next((c for c in module_classes(text, one.source) if c.name == one.class_name), None)
    if found is not None:
        one.line = found.name_range.start.line + 1
    return parsed


def _record(one: Checked) -> str:
    command = f"kernel-lsp validate --write {shlex.quote(os.path.relpath(one.kernel))}"
    return f"The kernel is still correct; record that with: {command}"


def _again(one: Checked) -> str:
    return f"Generate it again: {_generate(one)}"


def _generate(one: Checked) -> str:
    place = f"{os.path.relpath(one.source) if one.source else one.kernel}::{one.class_name}"
    return f"kernel-lsp generate {shlex.quote(place)}"


def _sentence(text: str) -> str:
    """A text with a full stop at its end; "" stays empty."""
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."
