"""What runs, where, in which order: the queue, the worker's client, the pipelines of generation and validation."""

from kernel_lsp.jobs.job import Job, Listener
from kernel_lsp.jobs.queue import Jobs

__all__ = ["Job", "Jobs", "Listener"]
