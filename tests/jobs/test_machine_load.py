"""What is said of a machine that is busy."""

from __future__ import annotations

import os

import pytest

from kernel_lsp.jobs.machine_load import busy_words, waiting_words


@pytest.mark.parametrize(
    ("load", "count", "said"),
    [
        (3.9, 2, ""),
        (9.6, 2, " This machine is busy: 10 processes want its 2 processors."),
        (2.0, 1, " This machine is busy: 2 processes want its 1 processor."),
    ],
)
def test_what_is_said_of_the_load(load: float, count: int, said: str) -> None:
    assert busy_words(load, count) == said
    assert bool(waiting_words(load, count)) == bool(said)


def test_a_machine_that_does_not_know_its_load_is_not_called_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "getloadavg")
    assert busy_words() == waiting_words() == ""
