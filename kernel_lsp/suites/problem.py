"""A problem of a suite."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Problem:
    """One problem of a suite."""

    suite: str  # "kernelbench" | "folder"
    id: str  # unique in the suite: "level1/19_ReLU", or "norm.py::RMSNorm" (relative path, forward slashes)
    name: str  # for people: "19_ReLU"
    path: str  # of the file, relative to the suite's folder, forward slashes
    class_name: str
    level: int | None = None
    number: int | None = None
    trait: str = ""  # "constant" where the result is known not to depend on the input, see kernelbench.py
