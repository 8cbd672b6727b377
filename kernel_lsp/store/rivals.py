"""The kernel that was fastest for a class before: what a new one has to be as fast as."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernel_lsp import schema
from kernel_lsp.store import database

# Of the same class, with its text, correct, and timed on this machine's device at the same shapes; the versions may differ.
_QUERY = """
select v.body, k.source, k.variant, m.kernel, v.reached_at from verdicts v join targets t on t.id = v.target
join measurements m on m.verdict = v.id join kernels k on k.body = v.body
where t.fingerprint = ? and v.device = ? and v.here = 1 and v.body <> ? and m.inputs = ? and m.kernel is not null
and v.status in ({statuses}) order by m.kernel limit 1
"""


@dataclass(frozen=True)
class Rival:
    """A kernel file without its header, and what it took then: the median in microseconds."""

    body: str  # its hash
    source: str
    variant: str
    kernel: float
    reached_at: str  # ISO 8601, UTC


def fastest(fingerprint: str, device: str, inputs: str, other_than: str, path: Path | None) -> Rival | None:
    """The fastest kernel for a class on a device at these inputs (as ``measurements`` has them), but for one body.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        if connection is None:
            return None
        statuses = sorted(schema.CORRECT)
        query = _QUERY.format(statuses=", ".join("?" * len(statuses)))
        row = connection.execute(query, (fingerprint, device, other_than, inputs, *statuses)).fetchone()
        return Rival(*row) if row is not None else None
