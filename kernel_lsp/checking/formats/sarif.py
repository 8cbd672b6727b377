"""SARIF 2.1.0, the OASIS standard that code scanning reads. Locations are relative to the repository's root."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from kernel_lsp import __version__
from kernel_lsp.checking.formats.places import encoded, relative
from kernel_lsp.checking.records import Checked, Finding, Outcome

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"

#: id → (name, level, what it means, what to do)
_RULES = {
    "kernel-wrong": (
        "KernelWrong",
        "error",
        "The kernel does not compute what its class computes, or could not be run.",
        "Generate the kernel again: kernel-lsp generate FILE::CLASS.",
    ),
    "kernel-outdated": (
        "KernelOutdated",
        "error",
        "The class was changed since the kernel was written, and the kernel does not fit any more.",
        "Generate the kernel again: kernel-lsp generate FILE::CLASS.",
    ),
    "kernel-stale": (
        "KernelStale",
        "warning",
        "The class, or something it uses, changed since the kernel was validated.",
        "Validate the kernel again and record it: kernel-lsp validate --write KERNEL_FILE.",
    ),
    "kernel-regressed": (
        "KernelRegressed",
        "warning",
        "The kernel is slower than the fastest one that its class had before, timed in turn with it.",
        "Restore the faster one in an editor, or generate the kernel again: kernel-lsp generate FILE::CLASS.",
    ),
    "kernel-slower": (
        "KernelSlower",
        "note",
        "The kernel is correct, but slower than eager or torch.compile.",
        "Use the module itself, or generate the kernel again: kernel-lsp generate FILE::CLASS.",
    ),
    "cannot-validate": (
        "CannotValidate",
        "error",
        "The validation could not run.",
        "Correct what the message names; kernel-lsp doctor looks for what is missing.",
    ),
}


def text(outcome: Outcome) -> str:
    """The log file."""
    return json.dumps(log(outcome), ensure_ascii=False, indent=2) + "\n"


def log(outcome: Outcome) -> dict[str, Any]:
    """The log file as plain data."""
    results = [_result(one, finding, outcome.root) for one in outcome.checked for finding in one.findings]
    driver = {"name": "kernel-lsp", "version": __version__, "rules": [_rule(name) for name in _RULES]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [_invocation(outcome)],
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(name: str) -> dict[str, Any]:
    title, level, meaning, action = _RULES[name]
    return {
        "id": name,
        "name": title,
        "shortDescription": {"text": meaning},
        "fullDescription": {"text": meaning},
        "help": {"text": action},
        "defaultConfiguration": {"level": level},
    }


def _result(one: Checked, finding: Finding, root: Path) -> dict[str, Any]:
    path, line = one.place
    location = _location(path, line, root)
    if one.class_name:
        location["logicalLocations"] = [{"fullyQualifiedName": one.class_name, "kind": "type"}]
    identity = "\n".join((finding.code, location["physicalLocation"]["artifactLocation"]["uri"], one.class_name))
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": list(_RULES).index(finding.code),
        "level": finding.level,
        "message": {"text": finding.text},
        "locations": [location],
        # The same finding after the class has moved within its file.
        "partialFingerprints": {"kernelLsp/v1": hashlib.sha256(identity.encode("utf-8")).hexdigest()},
    }
    if path != one.kernel:
        related = _location(one.kernel, one.kernel_line, root)
        result["relatedLocations"] = [{"id": 1, "message": {"text": "The kernel."}, **related}]
    return result


def _location(path: Path, line: int, root: Path) -> dict[str, Any]:
    inside = relative(path, root)
    artifact = {"uri": path.as_uri()} if inside is None else {"uri": encoded(inside), "uriBaseId": _ROOT}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}}}


def _invocation(outcome: Outcome) -> dict[str, Any]:
    notifications = [
        {"level": "note", "message": {"text": f"Regressions: not measured ({why})."}} for why in outcome.not_measured
    ]
    if outcome.error:
        notifications.append({"level": "error", "message": {"text": outcome.error}})
    if outcome.interrupted:
        notifications.append({"level": "error", "message": {"text": "The command was interrupted."}})
    status = outcome.exit_status()
    return {
        "executionSuccessful": status in (0, 1),  # findings are what it is for
        "exitCode": status,
        "toolExecutionNotifications": notifications,
    }
