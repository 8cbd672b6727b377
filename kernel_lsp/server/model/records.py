"""What this session did for one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_lsp.jobs import Job


@dataclass
class Record:
    """The latest job of a class, and how far it is.

    ``fingerprint`` and ``text`` are the class's and the document's when the job began: what tells whether a result
    still holds.
    """

    job: Job | None = None
    asked: bool = False  # by a person, not by a save
    fingerprint: str | None = None
    text: str = ""
    stage: str = ""
    message: str = ""
    percentage: int = 0
    ended_at: str = ""  # ISO 8601, UTC
