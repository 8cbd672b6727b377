"""What a check found out of each kernel: plain data that every format is written from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kernel_lsp.schema import SpeedComparison

Level = Literal["error", "warning", "note"]

#: What ``--fail-on`` may name, and the code of the finding: the codes of the language server's diagnostics.
CODES = {
    "wrong": "kernel-wrong",
    "stale": "kernel-stale",
    "regressed": "kernel-regressed",
    "slower": "kernel-slower",
}
OUTDATED = "kernel-outdated"  #: the code of "wrong" where the class was changed away from the kernel
CANNOT_VALIDATE = "cannot-validate"
DEFAULT_FAIL_ON = ("wrong", "regressed")


@dataclass
class Regression:
    """A kernel that is slower than the fastest one that its class had before."""

    message: str
    comparison: SpeedComparison | None = None


@dataclass
class Finding:
    """One thing that is to be said of a kernel.

    Attributes:
        code: as the language server's diagnostics, for instance ``kernel-wrong``.
        message: what was found.
        fails: whether the exit status follows from it.
        action: what to do about it; "" where the message says so.
    """

    code: str
    level: Level
    message: str
    fails: bool
    action: str = ""

    @property
    def text(self) -> str:
        """Message and action, as one text."""
        return f"{self.message} {self.action}".strip()


@dataclass
class Checked:
    """One kernel file, and what was found out about it.

    Attributes:
        kernel: the kernel file, absolute.
        class_name: as the header names it; "" where there is no header to read.
        source: the file of the class, absolute; None where it was not found.
        line: 1-based, of the class in ``source``.
        kernel_line: 1-based, in the kernel file, that the verdict is about.
        status: the verdict's; "" where there is none.
        seconds: that the validation took.
        stale: the class changed since the kernel was validated, as its header has it.
        regression: None where there is none, or it was not measured.
        not_measured: why a regression could not be looked for; "" where it was.
    """

    kernel: Path
    class_name: str = ""
    source: Path | None = None
    line: int = 1
    kernel_line: int = 1
    status: str = ""
    seconds: float | None = None
    stale: bool = False
    regression: Regression | None = None
    not_measured: str = ""
    findings: list[Finding] = field(default_factory=list)

    @property
    def place(self) -> tuple[Path, int]:
        """Where a reader should look: at the class, or at the kernel file where the class was not found."""
        return (self.source, self.line) if self.source is not None else (self.kernel, 1)


@dataclass
class Outcome:
    """A whole run.

    Attributes:
        root: that locations are relative to: the repository's, or the current folder.
        unchanged: how many kernels ``--changed-since`` left out.
        error: why nothing was checked; "" where the run began.
    """

    root: Path
    checked: list[Checked] = field(default_factory=list)
    unchanged: int = 0
    changed_since: str | None = None
    interrupted: bool = False
    error: str = ""

    @property
    def not_measured(self) -> list[str]:
        """Why regressions were not measured, each reason once."""
        return list(dict.fromkeys(one.not_measured for one in self.checked if one.not_measured))

    def exit_status(self) -> int:
        """0 success; 1 a finding that fails; 2 a validation could not run; 130 interrupted."""
        if self.error:
            return 2
        if self.interrupted:
            return 130
        found = [finding for one in self.checked for finding in one.findings]
        if any(finding.fails for finding in found if finding.code != CANNOT_VALIDATE):
            return 1
        return 2 if any(finding.code == CANNOT_VALIDATE for finding in found) else 0
