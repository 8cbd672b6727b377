"""The report of a class as one HTML page: self-contained, without scripts, in the colours of the program that shows it.

``page`` and ``pages`` are the way in; ``Facts`` is all that a page can say. What is missing in it is said to be.
"""

from __future__ import annotations

from .facts import Facts
from .page import page, pages

__all__ = ["Facts", "page", "pages"]
