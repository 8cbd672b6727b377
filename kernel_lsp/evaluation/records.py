"""What an evaluation records: one line a problem in a results file, from which every score is computed.

The contract between what runs problems (runner.py) and what shows them. ``FORMAT`` is the number in a results file's header;
it changes when an older reader would misread the records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from kernel_lsp import schema
from kernel_lsp.suites.problem import Problem

FORMAT = 1

#: The status of a problem with a kernel that meets the strict standard, be it faster or slower.
OK = "ok"
#: No verdict yet: such a record stands for nothing, and its problem is run again.
INTERRUPTED = "interrupted"
#: A kernel that was asked for at a lower precision and is correct at that alone: it meets no strict standard.
NOT_STRICT = "not-strict"


@dataclass
class Record:
    """What came of one problem.

    ``status`` is "ok" for a kernel that meets the strict standard. Else it is one of these; readers must bear others:

    - of the candidates (``error`` is None): "wrong", "not-drop-in", "cheating", "timeout", "out-of-memory", "crashed",
      "compile-error", "rejected"; "not-strict" for a kernel that is correct at the lower precision that was asked for;
    - of the module or the job (``error`` says which): "not-lowered", "not-exportable", "not-comparable", "no-candidates",
      "failed" (the class cannot be run), "out-of-memory", "timeout", "crashed", "no-device".
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
        """A line of the results file, as data."""
        data: dict[str, Any] = schema.to_json(self)
        return data

    @classmethod
    def from_json(cls, data: Any) -> Record:
        """The record that ``to_json`` gave.

        Raises:
            TypeError: the data, or a field of it, has another form.
        """
        if not isinstance(data, dict):
            raise TypeError("not a record")
        record: Record = schema.from_json(cls, data)
        record._check()
        if record.problem.trait == "collapses":  # older records have it from the problem's name (now: outcomes.py)
            record.problem.trait = ""
        return record

    def _check(self) -> None:
        if not isinstance(self.problem, Problem):
            raise TypeError("problem")
        texts = [self.mode, self.status, self.reason, self.machine, self.at]
        texts += [getattr(self.problem, name) for name in ("suite", "id", "name", "path", "class_name", "trait")]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("a text")
        numbers = [one for one in (self.problem.level, self.problem.number) if one is not None]
        if not isinstance(self.versions, dict) or not isinstance(self.samples, dict):
            raise TypeError("versions or samples")
        for counts in self.samples.values():
            if not isinstance(counts, list) or len(counts) != 2:
                raise TypeError("samples")
            numbers += counts
        if not all(type(number) is int for number in numbers):
            raise TypeError("a number")
        if type(self.seconds) not in (int, float) or not math.isfinite(self.seconds):
            raise TypeError("seconds")
        if not all(isinstance(version, str) for version in self.versions.values()):
            raise TypeError("versions")
        if not all(part is None or isinstance(part, dict) for part in (self.error, self.report)):
            raise TypeError("error or report")

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about: two records with one key are of the same problem."""
        return self.problem.suite, self.problem.id, self.mode

    def read_report(self) -> schema.Report | None:
        """The report as dataclasses."""
        report: schema.Report | None = schema.from_json(schema.Report, self.report)
        return report
