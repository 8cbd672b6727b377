"""What an evaluation records: one line a problem in a results file, from which every score is computed.

The contract between what runs problems (runner.py) and what shows them. ``FORMAT`` is the number in a results file's header;
it changes when an older reader would misread the records.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernel_lsp import schema

FORMAT = 1

#: The status of a problem with a kernel that meets the strict standard, be it faster or slower.
OK = "ok"
#: No verdict yet: such a record stands for nothing, and its problem is run again.
INTERRUPTED = "interrupted"


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
    trait: str = ""  # "constant" | "collapses" | "": known of its graph, see suites/kernelbench.py


@dataclass
class Record:
    """What came of one problem.

    ``status`` is "ok" for a kernel that meets the strict standard. Else it is one of these; readers must bear others:

    - of the candidates (``error`` is None): "wrong", "not-drop-in", "cheating", "timeout", "out-of-memory", "crashed",
      "compile-error", "rejected";
    - of the module or the job (``error`` says which): "not-lowered", "not-exportable", "no-candidates", "failed" (the class
      cannot be run), "out-of-memory", "timeout", "crashed", "no-device".
    """

    problem: Problem
    mode: str  # "eval" | "train"
    status: str
    reason: str = ""  # why, one sentence; "" when ok
    error: dict[str, Any] | None = None  # UserError.to_json(), where the job failed
    # schema.Report as JSON, without the candidates' answers; of the sources only the shown candidate's is kept.
    report: dict[str, Any] | None = None
    seconds: float = 0.0  # of the whole problem, wall
    samples: dict[str, list[int]] = field(default_factory=dict)  # generator → [drawn, correct], for Pass@k
    # "kernel-lsp", "python", "torch", "triton", "driver", "device" (its name)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""  # a short id that tells machines apart in merged files; no host name
    at: str = ""  # ISO 8601 UTC, end of the problem

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = schema.to_json(self)
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        record: Record = schema.from_json(cls, data)
        return record

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about: two records with one key are of the same problem."""
        return self.problem.suite, self.problem.id, self.mode

    def read_report(self) -> schema.Report | None:
        """The report as dataclasses."""
        report: schema.Report | None = schema.from_json(schema.Report, self.report)
        return report
