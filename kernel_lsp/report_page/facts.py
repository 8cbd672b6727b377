"""The data that a page is made from."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_lsp.claims import Claim
from kernel_lsp.errors.surface import adapted
from kernel_lsp.kernel_file import KernelFile
from kernel_lsp.schema import CORRECT, Device, Measurement, Report, Verdict
from kernel_lsp.store.history import Entry


@dataclass
class Facts:
    """One class and its kernel. Every field but the name may be empty; texts are shown as they are, never run."""

    class_name: str
    verdict: Verdict | None = None
    measurement: Measurement | None = None
    device: Device | None = None  # where the verdict was reached
    claim: Claim | None = None  # what the file says where this machine has no verdict, or no times, of its own
    stale: str = ""  # why the verdict no longer holds
    outdated: str = ""  # what the verdict was reached with, where that is another than now
    history: list[Entry] = field(default_factory=list)  # the latest verdicts, the oldest of them first
    regression: str = ""
    less_exact: str = ""  # that the settings ask for a higher precision by now
    error: str = ""  # how the last job failed, or why there is no kernel
    skipped: bool = False  # a class of a folder without example inputs, which ``error`` says
    running: str = ""  # what goes on at the moment
    report: Report | None = None  # of this session
    module_path: str = ""
    module_source: str = ""
    module_line: int = 1  # of the file, at which module_source begins
    kernel_path: str = ""
    kernel_source: str = ""
    kernel_line: int = 1
    generator: str = ""
    note: str = ""

    @property
    def correct(self) -> bool:
        """Whether the verdict is that of a correct kernel."""
        return self.verdict is not None and self.verdict.status in CORRECT

    @property
    def measured_on(self) -> Device | None:
        """The device of the times, or the one of the verdict."""
        measured = self.measurement.device if self.measurement is not None else None
        return measured or self.device

    @property
    def timed(self) -> bool:
        """Whether there is any time to show."""
        return self.measurement is not None and bool(self.measurement.shapes)

    @property
    def not_timed(self) -> str:
        """Why there is none; "" where that was not recorded."""
        return adapted(self.measurement.missing).rstrip(".") if self.measurement is not None else ""

    @property
    def limits(self) -> list[str]:
        """What the verdict could not check; that there are no times is said with the speed."""
        limits = self.verdict.limits if self.verdict is not None else []
        return [limit for limit in limits if self.timed or not limit.startswith("time (")]

    def add_module(self, text: str, first: int, last: int) -> None:
        """The class's own lines of its file: from ``first`` to ``last``, both 0-based and in."""
        self.module_source, self.module_line = "\n".join(text.split("\n")[first : last + 1]), first + 1

    def add_kernel(self, kernel: KernelFile, path: str) -> None:
        """Take what the page shows of a kernel file at ``path``."""
        self.kernel_path, self.kernel_source, self.kernel_line = path, kernel.body, kernel.body_line + 1
        self.generator, self.note = kernel.generator, str(kernel.header.get("note", ""))

    @classmethod
    def of_report(cls, report: Report, error: str = "") -> Facts:
        """A job's report by itself: the chosen candidate stands for it, or the first where none is correct."""
        facts = cls(report.target.class_name, report=report, device=report.device, regression=report.regression)
        facts.error = error
        if report.candidates:
            shown = report.candidates[report.chosen if report.chosen is not None else 0]
            facts.verdict, facts.measurement = shown.verdict, shown.measurement
            facts.kernel_source = shown.candidate.source
            facts.generator, facts.note = shown.candidate.generator, shown.candidate.note
        return facts
