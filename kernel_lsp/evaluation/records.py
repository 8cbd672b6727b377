"""What came of each problem of a suite, as it stands in a results file.

The standard library alone. Times are seconds here, and microseconds inside a report.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FORMAT = 1


@dataclass
class Problem:
    """One problem of a suite."""

    suite: str  # "kernelbench" | "folder"
    id: str  # unique in the suite: "level1/19_ReLU", or "norm.py::RMSNorm"
    name: str  # for people: "19_ReLU"
    path: str  # of the file, relative to the suite's folder
    class_name: str
    level: int | None = None
    number: int | None = None
    trait: str = ""  # "constant" | "collapses" | "": known of its graph


@dataclass
class Record:
    """What came of one problem."""

    problem: Problem
    mode: str  # "eval" | "train"
    # "ok": a kernel that meets the strict standard (also a slower one); else "wrong", "not-lowered",
    # "not-exportable", "failed", "out-of-memory", "timeout", "crashed", …
    status: str
    reason: str = ""  # why, one sentence; "" when ok
    error: dict | None = None  # UserError.to_json(), where the job failed
    report: dict | None = None  # schema.Report as JSON
    seconds: float = 0.0  # of the whole problem, wall
    samples: dict[str, list[int]] = field(default_factory=dict)  # generator → [drawn, correct]
    # "kernel-lsp", "python", "torch", "triton", "driver", "device" (its name)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""  # short id so that merged files tell machines apart
    at: str = ""  # ISO 8601 UTC
