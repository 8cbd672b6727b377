"""Every kernel that this machine found correct, with the class that it was found correct for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.store import database
from kernel_lsp.store.kernels import Kernel
from kernel_lsp.store.targets import Target

# The latest verdict of a class, as it was, on a body on a device; what was imported, or has no file, is left out.
_PAIRS = """
select t.fingerprint, t.class, t.file, t.root, t.project, k.body, k.source, k.generator, k.note, k.variant,
    v.status, v.reached_at, v.device, v.torch, v.triton, v.version, v.error, m.over_eager
from verdicts v join targets t on t.id = v.target join kernels k on k.body = v.body
left join measurements m on m.verdict = v.id
where v.here and t.root != '' and t.file != '' and v.rowid = (
    select w.rowid from verdicts w where w.target = v.target and w.body = v.body and w.device = v.device and w.here
    order by w.reached_at desc, w.rowid desc limit 1
) and v.status in ('ok', 'slower')
order by t.root, t.file, t.class, k.body, v.reached_at
"""


@dataclass(frozen=True)
class Pair:
    """A class as it was, a kernel, and the latest verdict, which is correct."""

    target: Target
    kernel: Kernel
    status: str
    reached_at: str  # ISO 8601, UTC
    device: str
    torch: str
    triton: str
    version: str  # of kernel-lsp
    error: float | None
    over_eager: float | None


def pairs(path: Path) -> Iterator[Pair]:
    """One for each class, body and device.

    Raises:
        StoreUnusable: the store cannot be read.
    """
    with database.reading(path) as connection:
        for row in connection.execute(_PAIRS) if connection is not None else ():
            yield Pair(Target(*row[:5]), Kernel(*row[5:10]), *row[10:])
