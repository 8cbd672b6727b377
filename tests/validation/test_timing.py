"""What CUDA events show beyond the kernels between them, from times that other programs made longer."""

import pytest

from kernel_lsp.validation import timing


@pytest.mark.parametrize(
    ("one", "two", "beyond"),
    [
        ([4.0, 4.2, 4.1], [6.0, 6.1, 6.3], 2.0),
        ([4.0, 90.0, 95.0], [6.0, 100.0, 70.0], 2.0),  # another program ran in more than half of them
        ([4.0, 4.1, 4.2], [3.9, 4.0, 4.0], 4.0),  # never more than the shortest time of one kernel
        ([2.0, 2.0, 2.0], [6.0, 6.0, 6.0], 0.0),
    ],
)
def test_the_overhead_of_events_is_taken_from_the_least_disturbed_times(one, two, beyond):
    assert timing.overhead_between(one, two) == pytest.approx(beyond)
