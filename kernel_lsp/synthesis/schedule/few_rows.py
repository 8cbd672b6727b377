"""Few long rows: shared by programs and read once, or cut in chunks and read twice."""

from __future__ import annotations

from dataclasses import dataclass

from ..kernel.execution_plan import Hints, Kernel
from .cost import LEAST_SAVED, cost
from .extents import total
from .rewritings import LAUNCH
from .row_bytes import of_rows
from .schedules import Cooperative
from .space import space
from .target import Target

#: How many times as long as in chunks shared rows may be estimated to take for both to be measured.
_CLOSE = 1.5

#: Launches that chunks take beside the one that stores: what each comes to, and what these come to.
_LAUNCHES = 2


@dataclass(frozen=True)
class Estimate:
    """Seconds of a kernel whose rows are ``shared`` by programs, and ``cut`` in chunks."""

    shared: float
    cut: float

    @property
    def pays(self) -> bool:
        """Whether sharing saves enough to come first."""
        return self.cut - self.shared > LEAST_SAVED

    @property
    def close(self) -> bool:
        """Whether a measurement is to decide."""
        return self.shared < _CLOSE * self.cut


def estimate(kernel: Kernel, target: Target, hints: Hints) -> Estimate | None:
    """What few rows take; None where programs cannot share them, or where rows may be longer in a call, which one program each would take."""
    if not total(kernel.domain, kernel.domain.reduced).is_number:
        return None
    schedule = next((one for one in space(kernel, target, hints) if isinstance(one, Cooperative)), None)
    if schedule is None:
        return None
    every, read, written = of_rows(kernel, hints)
    again = read if read + written > target.l2 // 2 else 0  # else L2 holds it
    cut = (every + read + again + written) / target.bandwidth + _LAUNCHES * LAUNCH
    return Estimate(cost(kernel, schedule, target, hints).seconds, cut)
