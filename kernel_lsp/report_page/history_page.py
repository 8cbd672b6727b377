"""The histories of several classes as one page: ``kernel-lsp history --html``."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_lsp.store.history import History

from .history import history
from .html import div, el
from .page import document


def page(histories: Sequence[History]) -> str:
    """A whole HTML document, one card a class."""
    body = [el("header", el("h1", "History of Triton kernels"))]
    body += [history(one.entries, f"{one.class_name} · {one.file}", one.earlier) for one in histories]
    if not histories:
        body.append(el("p", "Nothing was validated.", class_="nothing"))
    return document("History of Triton kernels", div("cards", body))
