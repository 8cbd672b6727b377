"""How many times faster a kernel is: at the example's shapes, and over recorded ones, weighted by their calls."""

from __future__ import annotations

import pytest

from kernel_lsp import schema, speedup


def timing(median: float) -> schema.Timing:
    return schema.Timing(median, 0.9 * median, 1.1 * median, 50)


def shape(eager: float, kernel: float | None, calls: int | None = None, compiled: float | None = None):
    return schema.ShapeMeasurement(
        [],
        timing(eager),
        timing(compiled) if compiled else None,
        timing(kernel) if kernel else None,
        calls=calls,
    )


def test_without_recordings_the_example_counts():
    measurement = schema.Measurement([shape(30.0, 10.0, compiled=20.0)])
    assert speedup.speedups(measurement) == (pytest.approx(3.0), pytest.approx(2.0))
    assert speedup.mixed(measurement) is None and speedup.mix_words(measurement) == ""
    assert speedup.mix_share(measurement) is None


def test_over_recorded_shapes_each_counts_as_often_as_it_came():
    mix = schema.RecordedMix("train.py", 0.97)
    shapes = [shape(30.0, 10.0, compiled=20.0), shape(10.0, 10.0, 300), shape(100.0, 25.0, 10)]
    measurement = schema.Measurement(shapes, recorded=mix)
    # 300 × 10 + 10 × 100 against 300 × 10 + 10 × 25; torch.compile is timed at the example's alone
    assert speedup.speedups(measurement) == (pytest.approx(4000 / 3250), pytest.approx(2.0))
    eager, kernel = speedup.mixed(measurement)
    assert eager.median == pytest.approx(4000 / 310) and kernel.high == pytest.approx(1.1 * 3250 / 310)
    assert speedup.mix_words(measurement) == "over 2 recorded shapes of train.py, weighted by calls"
    assert speedup.mix_share(measurement) == 0.97
    shapes[2].kernel = None
    assert speedup.speedups(measurement)[0] == pytest.approx(1.0)
    assert speedup.mix_words(measurement) == "at the recorded shape of train.py"
    shapes[1].kernel = None
    assert speedup.speedups(measurement)[0] == pytest.approx(3.0) and speedup.mix_words(measurement) == ""


@pytest.mark.parametrize(
    ("shapes", "status"),
    [
        ([shape(30.0, 10.0)], "ok"),
        ([shape(10.0, 30.0)], "slower"),
        ([shape(30.0, 10.0), shape(10.0, 15.0, 1000), shape(90.0, 10.0, 2)], "slower"),  # fast where it rarely comes
        ([shape(10.0, 30.0), shape(10.0, 15.0, 10), shape(90.0, 10.0, 20)], "ok"),  # slow at the example alone
        ([shape(10.0, 10.5), shape(10.0, 10.5, 10)], "ok"),  # within the spread
    ],
)
def test_slower_is_what_is_slower_over_the_mix(shapes, status):
    verdict = schema.Verdict("ok")
    speedup.note_if_slower_than_eager(verdict, schema.Measurement(shapes, recorded=schema.RecordedMix("train.py")))
    assert verdict.status == status
    if status == "slower" and len(shapes) > 1:
        reason = "correct, but 15.0 µs against 10.2 µs of eager over 2 recorded shapes of train.py, weighted by calls"
        assert verdict.reason == reason


def test_reports_from_before_recorded_shapes_were_timed_are_read():
    data = schema.to_json(schema.Measurement([shape(30.0, 10.0)]))
    del data["recorded"], data["shapes"][0]["calls"]
    found = schema.from_json(schema.Measurement, data)
    assert found.recorded is None and found.shapes[0].calls is None and speedup.speedups(found)[0] == pytest.approx(3.0)
    new = schema.Measurement([shape(30.0, 10.0, 7)], recorded=schema.RecordedMix("train.py", 0.5, ["x: no memory"]))
    assert schema.from_json(schema.Measurement, schema.to_json(new)) == new
    assert schema.from_json(schema.Tried, {"variant": "num_warps=8"}).mixed is None
