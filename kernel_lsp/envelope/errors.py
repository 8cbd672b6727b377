"""The errors for modules that cannot be written as a drop-in class."""

from __future__ import annotations


class Unwritable(Exception):
    """The module cannot be written as a drop-in class: ``what`` stopped it, ``detail`` says why."""

    def __init__(self, what: str, detail: str) -> None:
        self.what, self.detail = what, detail
        super().__init__(f"{what}: {detail}")
