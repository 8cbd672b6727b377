"""A plugin for pytest that leaves its exit status in the cache: a run that was killed leaves none. ``.ci/run`` reads it."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)  # when the cache's own plugin has written which tests failed
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if not hasattr(session.config, "workerinput") and session.config.cache is not None:
        session.config.cache.set("exit_status", int(exitstatus))
