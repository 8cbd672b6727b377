"""The state of a class: its kernel, the verdict on it, whether that still holds, the running job and the last error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp.errors import NoExampleInputs

from .records import Record

if TYPE_CHECKING:
    from kernel_lsp.claims import Claim
    from kernel_lsp.errors import UserError
    from kernel_lsp.kernel_file import KernelFile
    from kernel_lsp.schema import Device, Measurement, Verdict
    from kernel_lsp.store.validations import Validation


@dataclass
class ClassState:
    """What is known of a kernel. ``verdict``, ``measurement`` and ``device`` are this machine's own findings, always.

    Attributes:
        claim: what the file says where this machine has no verdict, or no times, of its own.
        before: this machine's latest verdict where it was reached on another device or with other versions.
        changed: what is another now: "with torch 2.11.0 before; now 2.13.0".
        pending: whether this machine validated it is still being looked up.
        stale: why the verdict, or the claim, is about another version; "" while it is about this one.
        error: how the last job failed; of an open kernel file, why there can be none: its source, or its class there, is gone.
        wanted: the setting ``precision`` where the kernel is less exact than it asks for; else "".
    """

    kernel_path: Path | None = None
    kernel: KernelFile | None = None
    verdict: Verdict | None = None
    measurement: Measurement | None = None
    device: Device | None = None
    validated_at: str = ""
    claim: Claim | None = None
    before: Validation | None = None
    changed: str = ""
    pending: bool = False
    stale: str = ""
    regression: str = ""
    running: Record | None = None
    error: UserError | None = None
    wanted: str = ""
    no_kernel: str = ""  # why a generation that went through its course found none

    @property
    def correct(self) -> bool:
        """Whether this machine found the kernel correct."""
        return self.verdict is not None and self.verdict.status in ("ok", "slower")

    @property
    def outdated(self) -> bool:
        """Whether this machine found that the class was changed away from the kernel, also before its latest edit.

        Not where the kernel file itself was edited since: that may have made it fit.
        """
        edited = self.kernel is not None and self.kernel.edited
        return self.verdict is not None and self.verdict.status == "outdated" and not edited

    @property
    def lacks_inputs(self) -> bool:
        """Whether the last job failed for want of example inputs."""
        return isinstance(self.error, NoExampleInputs)

    @property
    def says_nothing(self) -> bool:
        """Whether neither this machine nor the file has a verdict, as far as is known by now."""
        return self.verdict is None and self.claim is None and self.before is None and not self.pending


def as_it_was(s: ClassState) -> ClassState:
    """With the verdict of before as if it were that of now, to show it with what it was reached with."""
    before = s.before
    if before is None:
        return s
    found = replace(s, verdict=before.verdict, measurement=before.measurement, device=before.device)
    found.validated_at = before.validated_at
    return found
