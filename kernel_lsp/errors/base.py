"""What an error is, how it goes over the wire, and the two that are of no theme."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from .surface import LOG, adapted

#: what a template says of a line, and leaves out where none is known
_WITH_LINE = re.compile(r" at line \{line\}| \(line \{line\}\)")


class UserError(Exception):
    """An error a user can act on. Subclasses set ``template``; keyword arguments fill it."""

    template: ClassVar[str] = "{message}"
    #: values that a program may want, too: they go on the wire as ``data``, beside the ``detail`` of every error
    carried: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, path: str | None = None, line: int | None = None, **values: Any) -> None:
        template = self.template if line is not None else _WITH_LINE.sub("", self.template)
        detail = str(values.get("detail", ""))
        if "{detail}." in template and not detail.endswith("..."):  # the template ends the sentence
            values |= {"detail": detail.removesuffix(".")}
        self.path = path
        self.line = line
        self.values = values
        super().__init__(template.format(path=path, line=line, **values))

    def __str__(self) -> str:
        """The message, adapted to the surface that this process writes to."""
        return adapted(super().__str__())

    def neutral(self) -> str:
        """The message as it is kept in reports and files, which any surface may show later and then adapts."""
        return super().__str__()

    def detail_last(self) -> str:
        """The message with its details at the end: what happened and what to do, for where little room is."""
        message, detail = str(self), adapted(str(self.values.get("detail", "")))
        for mark in (f": {detail}", f" ({detail})"):
            if detail and mark in message:
                return f"{message.replace(mark, '', 1)} Details: {detail}"
        return message

    def to_json(self) -> dict[str, Any]:
        """The error as it goes over the wire; ``from_json`` reads it."""
        where = {"path": self.path, "line": self.line} if self.path or self.line else None
        data = {name: self.values[name] for name in self.carried if name in self.values}
        data |= {"detail": str(self.values["detail"])} if self.values.get("detail") else {}
        return {"code": type(self).__name__, "message": str(self), "where": where} | ({"data": data} if data else {})


def from_json(data: dict[str, Any]) -> UserError:
    """The error that ``to_json`` described; an unknown code becomes a plain ``UserError`` with its text."""
    kind = {k.__name__: k for k in UserError.__subclasses__()}.get(data.get("code", ""), UserError)
    error = kind.__new__(kind)
    where = data.get("where") or {}
    error.path, error.line, error.values = where.get("path"), where.get("line"), dict(data.get("data") or {})
    Exception.__init__(error, data.get("message", ""))
    return error


class Cancelled(UserError):
    """The user or the program that asked ended the job or request before it was done."""

    template = "Cancelled."


class InternalError(UserError):
    """An unexpected exception, wrapped where a job, a request or a model's answer ends; ``detail``: its type and text."""

    template = f"kernel-lsp hit an error of its own: {{detail}}. Please report it with {LOG}."
