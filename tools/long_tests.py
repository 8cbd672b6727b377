"""tests/long.txt: the tests that take long, which make test leaves to make test-slow.

    PYTEST_ADDOPTS="--durations=0 --durations-min=0.2" make test > LOG; python tools/long_tests.py LOG

adds to the list what took more than ``SECONDS`` there. Of each kind some stay in make test: ``KEPT``.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

#: seconds of a test, what it makes for itself included, on a machine that does something else beside
SECONDS = 1.0
LIST = Path(__file__).parents[1] / "tests" / "long.txt"
#: tests that make test has though they take long: one of each way through the whole
KEPT = [
    "test_cli.py::test_generate_and_check_on_a_real_sample",
    "server/test_flow.py::*",
    "server/test_features.py::test_a*",
    "server/test_sessions.py::test_an_edited_kernel_file_is_not_overwritten_without_asking",
    "server/test_sessions.py::test_settings_arrive[[]pull[]]",
    "server/test_report.py::test_a_client_that_could_not_show_it_is_told_the_path",
    "slicing/test_files.py::test_odd_files",
    "commands/test_explain.py::test_an_operator_left_to_torch",
    "jobs/test_trouble.py::test_close_leaves_no_process_within_two_seconds",
    "confinement/test_files.py::test_nothing_secret_is_read",
    "worker/test_worker_protocol.py::test_cancel_kills_within_a_second",
    "validation/test_kernels.py::test_a_right_kernel_passes[[]softmax[]]",
    "validation/test_kernels.py::test_a_right_kernel_passes[[]affine[]]",
    "validation/adversarial/test_corpus.py::*[[]honest/atomics[]]",
    "validation/adversarial/test_corpus.py::*[[]harm/answers_the_compiler[]]",
    "validation/adversarial/test_corpus.py::*[[]tampering/stack[]]",
    "worker/test_unusual_modules.py::*[[]MeanOfNorm[]]",
    "synthesis/test_cases.py::*[[]planes_linear[]]",
    "synthesis/test_cases.py::*[[]collapsed_conv2d[]]",
    "synthesis/test_cases.py::*[[]walked_layer_norm[]]",
    "synthesis/test_cases.py::*[[]in_tiles_group_norm[]]",
    "synthesis/graph/test_map.py::*",
]
#: of a report's lines: seconds, "call" or "setup", and the test
_LINE = re.compile(r"(\d+\.\d+)s (call|setup) +tests/(\S.*)")


def main() -> None:
    """Adds to the list."""
    taken: dict[str, float] = defaultdict(float)
    for log in sys.argv[1:]:
        for seconds, _, test in _LINE.findall(Path(log).read_text()):
            taken[test.strip()] += float(seconds)
    known = {line for line in LIST.read_text().splitlines() if line} if LIST.exists() else set()
    known |= {test for test, seconds in taken.items() if seconds > SECONDS}
    kept = {test for test in known if any(fnmatch(test, pattern) for pattern in KEPT)}
    LIST.write_text("\n".join(sorted(known - kept)) + "\n")


if __name__ == "__main__":
    main()
