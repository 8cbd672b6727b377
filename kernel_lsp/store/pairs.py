"""Every kernel that this machine found correct, with its class, where it is correct on every device that it was validated on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.store import database
from kernel_lsp.store.kernels import Kernel
from kernel_lsp.store.targets import Target

# The latest verdict of a class, as it was, on a body on a device under a setting ``bounds``; what was imported, or has no
# file, is left out. So is a pair whose latest verdict on any device says that the kernel is wrong: also a verdict on
# another file of the same class, or an import. What ran out of time or memory says nothing of the kernel. A kernel that is
# wrong under "trust" is wrong under "check", too, which asks for more. What was asked for at a lower precision is left out.
_PAIRS = """
with found_wrong as (
    select fingerprint, body, bounds from (
        select t.fingerprint, v.body, v.bounds, v.status, row_number() over (
            partition by t.fingerprint, v.body, v.device, v.bounds order by v.reached_at desc, v.rowid desc
        ) as number
        from verdicts v join targets t on t.id = v.target where v.precision = 'strict' and v.status not in ('timeout', 'out-of-memory')
    ) where number = 1 and status not in ('ok', 'slower')
)
select t.fingerprint, t.class, t.file, t.root, t.project, k.body, k.source, k.generator, k.note, k.variant,
    v.status, v.reached_at, v.device, v.torch, v.triton, v.version, v.bounds, v.error, m.over_eager
from verdicts v join targets t on t.id = v.target join kernels k on k.body = v.body
left join measurements m on m.verdict = v.id
where v.here and v.precision = 'strict' and t.root != '' and t.file != '' and v.rowid = (
    select w.rowid from verdicts w
    where w.target = v.target and w.body = v.body and w.device = v.device and w.bounds = v.bounds
    and w.precision = v.precision and w.here
    and w.status not in ('timeout', 'out-of-memory') order by w.reached_at desc, w.rowid desc limit 1
) and v.status in ('ok', 'slower')
and (t.fingerprint, k.body, v.bounds) not in (select fingerprint, body, bounds from found_wrong)
and (t.fingerprint, k.body, 'trust') not in (select fingerprint, body, bounds from found_wrong)
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
    bounds: str  # the setting
    error: float | None
    over_eager: float | None


def pairs(path: Path) -> Iterator[Pair]:
    """One for each class, body, device and setting ``bounds``.

    Raises:
        StoreUnusable: the store cannot be read.
    """
    with database.reading(path) as connection:
        for row in connection.execute(_PAIRS) if connection is not None else ():
            yield Pair(Target(*row[:5]), Kernel(*row[5:10]), *row[10:])
