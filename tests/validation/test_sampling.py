"""Program instances that are left out under the interpreter, in a worker's own trial."""

from kernel_lsp.validation.sampling import Sampling

GRID = (1000, 1, 1)


def run(sampling: Sampling, pause: float, monkeypatch) -> int:
    """One launch whose instances take ``pause`` seconds each, by a clock that only they move; the instances run."""
    now = [0.0]
    monkeypatch.setattr("kernel_lsp.validation.sampling.time.monotonic", lambda: now[0])
    sampling.reset()
    sampling.launch(GRID)
    for number in range(GRID[0]):
        if not sampling.skips((number, 0, 0)):
            now[0] += pause
    return sampling.run


def test_a_short_launch_is_run_in_full(monkeypatch):
    sampling = Sampling()
    sampling.seconds = 0.25
    assert run(sampling, 0.0001, monkeypatch) == 1000


def test_a_long_launch_is_cut_short_and_the_next_spreads_its_instances(monkeypatch):
    sampling = Sampling()
    sampling.seconds = 0.25
    assert 2 <= run(sampling, 0.01, monkeypatch) < 30
    assert sampling.total == 1000
    assert 2 <= run(sampling, 0.01, monkeypatch) < 30
    assert max(sampling.chosen or ()) == 999


def test_after_a_moment_of_load_a_launch_is_run_in_full_again(monkeypatch):
    sampling = Sampling()
    sampling.seconds = 0.25
    run(sampling, 0.01, monkeypatch)  # the machine was busy
    run(sampling, 0.0001, monkeypatch)  # few are chosen, and they turn out to be quick
    assert run(sampling, 0.0001, monkeypatch) == 1000
