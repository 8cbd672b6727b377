"""The error that stops the lowering of an exported graph."""

from __future__ import annotations


class Untraceable(Exception):
    """A node that neither lowers nor can stand as a torch call (its result is no tensor of known shape)."""

    def __init__(self, op: str, detail: str, place: tuple[str, int] | None = None) -> None:
        self.op, self.detail, self.place = (
            op,
            detail,
            place,
        )  # place: (file, line) of the user's code, where it is known
        super().__init__(f"{op}: {detail}")
