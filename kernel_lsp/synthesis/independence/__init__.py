"""Dimensions along which a module can be computed slice by slice, as its exported graph shows.

A size symbol of torch.export is followed from the inputs to the outputs: each tensor that depends on it has to carry it
along exactly one dimension, and no operator may mix what lies at different places along it. What no rule knows ends
the search: a dimension is named only where it is certain. The symbol stands for every size, so that the forward takes
the same way for a slice, and a size that the module assumes is no symbol at all.

carry.py says what is followed, walk.py goes through the graph, the other files have a rule for each operator.
"""

from __future__ import annotations

from .walk import find, why_not

__all__ = ["find", "why_not"]
