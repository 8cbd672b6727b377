"""Pause and resume what nobody asked for: validation after a save, and workers that wait for work."""

from __future__ import annotations

from .state import State


def pause(state: State) -> None:
    """Stop it, and let go of the GPU. What somebody asks for still runs."""
    state.paused = True
    state.follow_up.interrupt()
    if state.jobs is not None:
        for record in state.records.values():
            if record.job is not None and not record.job.over and not record.asked:
                state.jobs.cancel(record.job.id)
                record.fingerprint = None  # this text was not judged: resume, or the next save, does it
        state.jobs.rest()
    state.server.status_reports.soon()


def resume(state: State) -> None:
    """Catch up with the saves there were."""
    from .saving import validate_changed, warm_worker

    state.paused = False
    for document in state.documents:
        warm_worker(state, document.path)
    validate_changed(state)
    state.follow_up.interrupt()
    state.server.status_reports.soon()
