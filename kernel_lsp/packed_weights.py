"""Whether a kernel file keeps packed weights from call to call, and how that is said. The standard library alone: both sides import this.

The file's text tells it: its class has the method that drops what is kept. A header can be written by anyone.
"""

from __future__ import annotations

import re

#: the method of a class that keeps packed weights
METHOD = "forget_packed_weights"
#: beside a speedup or a verdict
LABEL = "packed weights kept"
#: what no validation of such a kernel shows
LIMIT = (
    "weights that change without their version counter, such as through .data or by a fused optimizer "
    f"(packed weights are kept until {METHOD}() is called)"
)
_DEFINED = re.compile(rf"^\s+def {METHOD}\(", re.MULTILINE)


def keeps(source: str) -> bool:
    """Whether the kernel in a file's text keeps packed weights."""
    return _DEFINED.search(source) is not None
