"""A trial begins with CUDA when the referee lets it, and takes that for no message."""

from __future__ import annotations

import select
import time

import pytest

from kernel_lsp.validation import channel
from kernel_lsp.validation.trial_connection import TrialConnection


@pytest.mark.parametrize("waits", [False, True])
def test_a_trial_is_let_begin_before_it_is_asked_unless_it_waits_for_that(waits: bool) -> None:
    mine, theirs = channel.pair()
    reach = TrialConnection(channel.Channel(mine), "", str, lambda: None, time.monotonic() + 10, waits=waits)
    with mine, theirs:

        def may_begin() -> bool:
            return bool(select.select([theirs], [], [], 0)[0])

        assert not may_begin()
        reach.start()
        assert may_begin() is not waits
        reach.send({"do": "load"})
        assert may_begin()
        assert channel.Channel(theirs).receive(5)[0] == {"do": "load"}


def test_one_that_has_ended_is_let_begin_for_nothing() -> None:
    mine, theirs = channel.pair()
    theirs.close()
    with mine:
        TrialConnection(channel.Channel(mine), "", str, lambda: None, time.monotonic() + 10).start()
