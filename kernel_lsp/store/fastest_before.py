"""The kernel that was fastest for a class before: a new one is compared with it, and can be replaced by it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp import packed_weights, schema
from kernel_lsp.store import database

# Of the same class, with its text, correct under the same settings ``bounds`` and ``precision``, and timed on this machine's device at the
# same shapes; the versions may differ. One that was found wrong since is none. The latest time of each counts: an earlier
# one may be of other versions. Where there is one that was taken without other work on the GPU, it is the latest of these.
_QUERY = """
with ours as (
    select v.id, t.fingerprint, v.body, v.device, v.driver, v.torch, v.triton, v.version, v.bounds, v.precision,
        v.reached_at,
        v.status in ({statuses}) as correct
    from verdicts v join targets t on t.id = v.target
    where t.fingerprint = ? and v.device = ? and v.bounds = ? and v.precision = ? and v.here = 1 and v.body not in ({bodies})
), wrong as (select body, max(reached_at) as latest from ours where not correct group by body
), timed as (
    select o.*, m.kernel, row_number() over (
        partition by o.body order by m.measurement glob '*"beside": "[^"]*', o.reached_at desc, m.rowid desc
    ) as number
    from ours o join measurements m on m.verdict = o.id left join wrong w on w.body = o.body
    where o.correct and m.inputs = ? and m.kernel is not null and (w.latest is null or w.latest <= o.reached_at)
)
select o.fingerprint, o.body, o.device, o.driver, o.torch, o.triton, o.version, o.bounds, o.precision, k.source,
    o.kernel, o.reached_at
from timed o join kernels k on k.body = o.body where o.number = 1 and (instr(k.source, ?) > 0) = ? order by o.kernel limit 1
"""

# The latest of its validations here first. Whether it is for the example's sizes alone the settings say; earlier versions
# kept that with the graph alone, or not at all.
_CANDIDATE = """
select k.source, k.generator, k.note, k.variant, v.precision, m.settings, x.pinned from kernels k
join verdicts v on v.body = k.body join targets t on t.id = v.target
left join measurements m on m.verdict = v.id left join verdict_graphs x on x.verdict = v.id
where t.fingerprint = ? and k.body = ? and v.here = 1 order by v.reached_at desc, v.rowid desc
"""


@dataclass(frozen=True)
class Rival:
    """A kernel file without its header, what it was validated with, and what it took then."""

    fingerprint: str  # of the class
    body: str  # its hash
    device: str
    driver: str
    torch: str
    triton: str
    version: str  # of kernel-lsp
    bounds: str  # the setting
    precision: str  # the setting
    source: str
    kernel: float  # median in microseconds
    reached_at: str  # ISO 8601, UTC


def fastest(
    fingerprint: str,
    device: str,
    bounds: str,
    inputs: str,
    other_than: Collection[str],
    path: Path | None,
    precision: str = "strict",
    keeps_packed_weights: bool = False,
) -> Rival | None:
    """The fastest kernel for a class on a device at these inputs (as ``measurements`` has them), by the latest time of each.

    ``other_than``: bodies that are left out. ``bounds``: the setting; a kernel that need not look at its indices is no measure for one that has to.
    Nor is one that rounds for one that may not: ``precision``. Nor, either way, one that keeps packed weights for one that does not.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        if connection is None:
            return None
        statuses = sorted(schema.CORRECT)
        places = {"statuses": statuses, "bodies": other_than}
        query = _QUERY.format(**{name: ", ".join("?" * len(values)) for name, values in places.items()})
        method = f"def {packed_weights.METHOD}("
        values = (*statuses, fingerprint, device, bounds, precision, *other_than, inputs, method, keeps_packed_weights)
        row = connection.execute(query, values).fetchone()
        return Rival(*row) if row is not None else None


def candidate(fingerprint: str, body: str, path: Path | None) -> tuple[schema.Candidate, bool] | None:
    """The kernel with this hash as it was proposed once, if this machine has validated it for the class.

    And whether the store knows if it is pinned. Where it does not, the candidate says that it is not.

    Raises:
        StoreUnusable: the file cannot be read.
    """
    with database.reading(path) as connection:
        if connection is None:
            return None
        rows = connection.execute(_CANDIDATE, (fingerprint, body)).fetchall()
    if not rows:
        return None
    source, generator, note, variant, precision = rows[0][:5]
    said = [pinned for row in rows if (pinned := _pinned(*row[5:])) is not None]
    if variant == schema.NARROWED:
        said.append(True)
    pinned = bool(said) and said[0]
    found = schema.Candidate(source, generator, note=note, variant=variant, pinned=pinned, precision=precision)
    return found, bool(said)


def _pinned(settings: str | None, with_graph: int | None) -> bool | None:
    """What one validation says of it; None where it says nothing."""
    with contextlib.suppress(ValueError, AttributeError):
        said = json.loads(settings or "{}").get("pinned")
        if isinstance(said, bool):
            return said
    return bool(with_graph) if with_graph is not None else None
