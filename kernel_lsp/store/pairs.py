"""Every kernel that this machine found correct, with the class that it is correct for on every device it ran on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.store import database
from kernel_lsp.store.kernels import Kernel
from kernel_lsp.store.targets import Target

# The latest verdict of a class, as it was, on a body on a device; what was imported, or has no file, is left out. So is
# a pair that is wrong on any device: also one with another file of the same class, or an import, as its latest verdict.
_PAIRS = """
with found_wrong as (
    select fingerprint, body from (
        select t.fingerprint, v.body, v.status, row_number() over (
            partition by t.fingerprint, v.body, v.device order by v.reached_at desc, v.rowid desc
        ) as number
        from verdicts v join targets t on t.id = v.target
    ) where number = 1 and status not in ('ok', 'slower')
)
select t.fingerprint, t.class, t.file, t.root, t.project, k.body, k.source, k.generator, k.note, k.variant,
    v.status, v.reached_at, v.device, v.torch, v.triton, v.version, v.error, m.over_eager
from verdicts v join targets t on t.id = v.target join kernels k on k.body = v.body
left join measurements m on m.verdict = v.id
where v.here and t.root != '' and t.file != '' and v.rowid = (
    select w.rowid from verdicts w where w.target = v.target and w.body = v.body and w.device = v.device and w.here
    order by w.reached_at desc, w.rowid desc limit 1
) and v.status in ('ok', 'slower') and (t.fingerprint, k.body) not in (select fingerprint, body from found_wrong)
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
