"""GitHub Actions' workflow commands: an annotation on the class of each finding."""

from __future__ import annotations

from kernel_lsp.checking.formats.places import shown
from kernel_lsp.checking.records import Outcome

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def text(outcome: Outcome) -> str:
    """One command a line; "" where there is nothing to say."""
    lines = []
    for one in outcome.checked:
        path, line = one.place
        for finding in one.findings:
            place = {"file": shown(path, outcome.root), "line": str(line), "title": finding.code}
            lines.append(_command(_COMMANDS[finding.level], finding.text, place))
    for why in outcome.not_measured:
        lines.append(_command("notice", f"Regressions: not measured ({why}).", {"title": "kernel-lsp"}))
    if outcome.error:
        lines.append(_command("error", outcome.error, {"title": "kernel-lsp"}))
    return "".join(f"{line}\n" for line in lines)


def _command(name: str, message: str, properties: dict[str, str]) -> str:
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(message)}"


def _data(text: str) -> str:
    """The escapes of actions/toolkit: a message is one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
