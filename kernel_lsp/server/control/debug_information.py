"""The data for bug reports, which tests read, too. It holds nothing of the user's code."""

from __future__ import annotations

import os
import sys
from typing import Any

from kernel_lsp import __version__

from ..session.session import Session


def debug_information(session: Session) -> dict[str, Any]:
    """Versions, processes, settings' effects and counts, as JSON data."""
    protocol = session.connection.protocol
    heavy = ("torch", "triton", "numpy", "transformers", "rich")
    return {
        "version": __version__,
        "python": sys.version,
        "pid": os.getpid(),
        "workerPids": session.jobs.worker_pids() if session.jobs is not None else [],
        "modelHostPids": session.jobs.model_host_pids() if session.jobs is not None else [],
        "trusted": session.trusted,
        "paused": session.paused,
        "watching": session.file_changes.how,
        "documents": sum(1 for _ in session.documents),
        "jobs": [job.id for job in session.active_jobs()],
        "pendingFutures": len(protocol._request_futures),
        "progressTokens": len(session.progress) + len(protocol.progress.tokens),
        "heavyModules": [name for name in heavy if name in sys.modules],
        "client": {name: getattr(session.client, name) for name in session.client.__dataclass_fields__},
    }
