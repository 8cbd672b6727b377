"""What each kind of job does. Imported once a job runs: beside an editor, most of the time none does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kernel_lsp.jobs.explain import explain
from kernel_lsp.jobs.generate import generate
from kernel_lsp.jobs.job import Kind
from kernel_lsp.jobs.restore import restore
from kernel_lsp.jobs.run import Run
from kernel_lsp.jobs.validate import validate

PIPELINES: dict[Kind, Callable[[Run], Awaitable[None]]] = {
    "generate": generate,
    "validate": validate,
    "restore": restore,
    "explain": explain,
}
