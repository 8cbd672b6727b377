"""What the profiler's spans of a candidate's calls say: the validation of spans by itself; on a GPU test_timing_gpu.py."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from kernel_lsp import schema
from kernel_lsp.validation import profiled_kernels

ROW = ("row_kernel", 0.0, 40.0)
CAST = ("void cast<float>", 41.0, 2.0)


def looked(calls, missing="", median=45.0):
    """(why it cheats, the shape, the limits) for the spans of a trial."""

    @contextmanager
    def asking(message, tree):
        assert message == {"do": "profile"}
        yield SimpleNamespace(message={"calls": calls, "missing": missing})

    referee = SimpleNamespace(asking=asking, of_timing=[])
    shape = schema.ShapeMeasurement([], kernel=schema.Timing(median, median, median, 50))
    return profiled_kernels.look(referee, ((), {}), shape), shape, referee.of_timing


def test_each_kernel_has_its_time():
    problem, shape, limits = looked([[ROW, CAST]] * 4 + [[("row_kernel", 0.0, 44.0), CAST]])
    assert problem == "" and limits == []
    assert shape.spans == {"row_kernel": 40.0, "void cast<float>": 2.0}


@pytest.mark.parametrize("calls", [[[ROW, CAST], [CAST]], [[ROW], [ROW, ROW]], [[ROW], []]])
def test_calls_that_run_other_kernels_are_found(calls):
    problem, shape, _ = looked(calls)
    assert "does not run the same kernels in each of 2 equal calls: row_kernel" in problem
    assert shape.spans == {}


def test_more_work_than_was_timed_is_found():
    problem, *_ = looked([[("hidden_kernel", 0.0, 400.0)]] * 5)
    assert problem == "its kernels take 400 µs in a call by the profiler, and 45 µs by CUDA events"


def test_kernels_beside_each_other_count_once():
    assert looked([[("a", 0.0, 50.0), ("b", 1.0, 50.0), ("c", 10.0, 5.0)]] * 5, median=48.0)[0] == ""


def test_where_the_profiler_does_not_run_that_is_a_limit():
    problem, shape, limits = looked([], "RuntimeError: CUPTI is not there")
    assert problem == "" and shape.spans == {}
    assert limits == ["which kernels take the time: RuntimeError: CUPTI is not there"]
