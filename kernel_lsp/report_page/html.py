"""Elements as text. A ``str`` becomes escaped text, ``Markup`` alone goes in as it is: nothing else can make a tag."""

from __future__ import annotations

import html
from collections.abc import Container, Iterable, Sequence

#: No HTML file may hold these: control characters, lone surrogates, and what is no character. The directions of
#: writing among them would have source read other than it runs.
_ILLEGAL = {code: 0xFFFD for code in (*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)}
_ILLEGAL |= {code: f"<U+{code:04X}>" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}  # type: ignore[misc]
for _allowed in map(ord, "\t\n"):
    del _ILLEGAL[_allowed]
_VOID = {"meta", "br", "hr", "rect", "line", "circle", "path"}


class Markup(str):
    """Text that is HTML already."""


Child = str | Iterable["Child"] | None


def escape(text: str) -> Markup:
    """Text for between tags and inside quoted attributes."""
    return Markup(html.escape(text.replace("\r\n", "\n").replace("\r", "\n").translate(_ILLEGAL)))


def join(children: Child) -> Markup:
    """A child, or all of several, as markup; None is nothing."""
    if children is None:
        return Markup("")
    if isinstance(children, Markup):
        return children
    if isinstance(children, str):
        return escape(children)
    return Markup("".join(map(join, children)))


def el(name: str, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """An element: ``el("td", "2.31×", class_="number")``. Attributes that are None or False are left out."""
    parts = [name]
    for key, value in attributes.items():
        if value is not None and value is not False:
            text = "" if value is True else str(value)
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{escape(text)}"')
    head = " ".join(parts)
    return Markup(f"<{head}/>" if name in _VOID else f"<{head}>{join(children)}</{name}>")


def div(class_: str, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """A ``div`` of a CSS class."""
    return el("div", *children, class_=class_, **attributes)


def span(class_: str, *children: Child) -> Markup:
    """A ``span`` of a CSS class."""
    return el("span", *children, class_=class_)


def section(title: str, *children: Child, hint: str = "", id_: str | None = None) -> Markup:
    """A card with its heading."""
    heading = el("h2", title) if not hint else div("heading", el("h2", title), el("p", hint, class_="hint"))
    return el("section", heading, *children, id_=id_)


def details(summary: Child, *children: Child, open_: bool = False, class_: str | None = None) -> Markup:
    """Children that fold away under ``summary``, at first shown if ``open_``."""
    return el("details", el("summary", summary), *children, open_=open_, class_=class_)


def table(head: Iterable[Child], rows: Iterable[Iterable[Child]], numbers: Iterable[int] = ()) -> Markup:
    """A table that scrolls by itself where it is too wide; ``numbers``: the columns that are set to the right."""
    right = set(numbers)

    def cells(kind: str, row: Iterable[Child]) -> list[Markup]:
        return [el(kind, cell, class_="number" if i in right else None) for i, cell in enumerate(row)]

    body = [el("tr", cells("td", row)) for row in rows]
    return div("wide", el("table", el("thead", el("tr", cells("th", head))), el("tbody", body)))


def percent(share: float) -> str:
    """A length of a chart: ``43.21%``."""
    return f"{100 * share:.2f}%"


def cards(*children: Markup | None) -> Markup | None:
    """A row of cards, side by side where there are two; None where there is none."""
    there = [child for child in children if child]
    return div("cards two" if len(there) > 1 else "cards", there) if there else None


def stack(*children: Markup | None) -> Markup | None:
    """Cards one below the other; None where there is none."""
    there = [child for child in children if child]
    return div("cards", there) if there else None


def filled(head: Sequence[str], rows: Sequence[Sequence[Child]], empty: Container[object]) -> list[int]:
    """The columns of a table, by their places, that have something other than ``empty`` in a row; and the first."""
    return [i for i in range(len(head)) if i == 0 or any(row[i] not in empty for row in rows)]
