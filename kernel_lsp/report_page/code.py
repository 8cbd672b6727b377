"""Python source with line numbers and colours."""

from __future__ import annotations

from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType

from kernel_lsp.naming import kernel_class

from .facts import Facts
from .html import Markup, div, el, escape, join, section

#: Token types and their classes, the more particular first.
_CLASSES = (
    (Comment, "c"),
    (String.Doc, "c"),
    (String.Affix, "s"),
    (String, "s"),
    (Number, "n"),
    (Keyword, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "d"),
    (Name.Builtin, "b"),
)
_MOST = 200_000  # characters that are coloured


def side_by_side(facts: Facts) -> Markup:
    """The class and its kernel, beside each other where there is room."""
    name = facts.class_name.rpartition(".")[2]
    module = facts.module_source and listing(facts.module_source, facts.module_line)
    kernel = facts.kernel_source and listing(facts.kernel_source, facts.kernel_line)
    return section(
        "Source",
        div(
            "sides",
            _side(
                f"{name}, the module",
                facts.module_path,
                module or "The source of the class is not in this file, or was not read.",
            ),
            _side(f"{kernel_class(facts.class_name)}, the kernel", facts.kernel_path, kernel or "There is no kernel."),
        ),
    )


def _side(title: str, path: str, body: str) -> Markup:
    content = body if isinstance(body, Markup) else el("p", body, class_="nothing")
    where = el("p", el("code", path), class_="hint") if path else None
    return div("side", div("pin", el("h3", title), where, content))


def listing(source: str, first: int = 1, marked: int | None = None) -> Markup:
    """``source`` line by line, numbered from ``first``; the line number ``marked`` stands out."""
    rows = []
    for number, line in enumerate(_lines(source), first):
        rows.append(el("span", line, "\n", class_="l marked" if number == marked else "l", data_n=number))
    return el("pre", el("code", rows), class_="code", tabindex="0")


def _lines(source: str) -> list[list[Markup]]:
    """Every line as pieces that are coloured each by itself, so that none reaches over the end of a line."""
    source = source.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    if len(source) > _MOST:
        return [[escape(line)] for line in source.split("\n")]
    lines: list[list[Markup]] = [[]]
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(source):
        css = _class(kind)
        for i, piece in enumerate(text.split("\n")):
            if i:
                lines.append([])
            if piece:
                lines[-1].append(el("i", piece, class_=css) if css else join(piece))
    return lines


def _class(kind: _TokenType) -> str | None:
    return next((css for family, css in _CLASSES if kind in family), None)
