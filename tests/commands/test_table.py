"""The table: what it says of a timed kernel, of one that was not timed, and of one that is not there."""

import types

from rich.console import Console

from kernel_lsp import errors, schema
from kernel_lsp.commands.running import Task
from kernel_lsp.commands.table import footer, names, print_reports, reason_of, row, table_of


def timing(median: float) -> schema.Timing:
    return schema.Timing(median, median, median, 50)


def task(name: str, measurement: schema.Measurement | None, status="ok", error=None) -> Task:
    kernel = schema.CompiledKernel("k", "cuda:90", registers=64, spills=0, shared=98304)
    verdict = schema.Verdict(
        status, error=1e-7, eager_error=2e-7, kernels=[kernel], reason="" if status == "ok" else "off by 2"
    )
    candidate = schema.Candidate("", "synthesizer", note="3 of 4 ops in Triton")
    report = schema.Report(schema.Target("", name.partition("::")[2]), chosen=0 if status == "ok" else None)
    report.candidates = [schema.Judged(candidate, verdict, measurement)]
    report.seconds = {"report": 3.21}
    return Task(name, None, types.SimpleNamespace(report=report, state="done"), error)


SHAPE = schema.ShapeMeasurement([], eager=timing(231.0), compiled=timing(124.0), kernel=timing(100.0))
TIMED = task("a.py::A", schema.Measurement([SHAPE], schema.Device("H100", "cuda")))
NOT_TIMED = task("b.py::B", schema.Measurement(missing="no CUDA GPU here: torch is built without CUDA"))


def test_a_timed_kernel_shows_times_and_speedups():
    cells = ["3 of 4", "1.0e-07 (2.0e-07)", "64 / 0 / 96K", "231.0 / 124.0 / 100.0", "2.31× / 1.24×", "3.2"]
    assert row(TIMED)[1:] == cells
    assert footer([TIMED])[-1].endswith("compiled for sm_90.")


def test_what_was_not_timed_says_why():
    assert row(NOT_TIMED)[-3:-1] == ["not measured", "no CUDA GPU"]
    assert "Not measured: no CUDA GPU here: torch is built without CUDA." in footer([NOT_TIMED])


def test_checks_that_were_left_out_are_counted(capsys):
    some = task("e.py::E", None)
    verdict = some.report.candidates[0].verdict
    verdict.checks = [schema.Check(f"check {i}", True) for i in range(10)]
    print_reports([some])
    assert "skipped" not in capsys.readouterr().out
    verdict.skipped = ["float64", "train mode"]
    print_reports([some])
    assert "E: checks: 10 passed, 2 skipped; --thorough makes all of them." in capsys.readouterr().out


def test_what_is_not_there_says_why():
    missing = Task("c.py::C", None, error=errors.NoExampleInputs(class_name="C"))
    assert "no kernel" in row(missing)[0]
    assert "get_inputs_C()" in reason_of(missing)
    assert reason_of(task("d.py::D", None, "wrong")) == "off by 2"
    assert reason_of(TIMED) == ""


def test_classes_of_one_name_are_told_apart_by_their_files():
    assert names([TIMED, NOT_TIMED]) == ["A", "B"]
    assert names([TIMED, task("b.py::A", None)]) == ["a.py::A", "b.py::A"]


def test_it_fits_a_terminal_of_eighty_columns_unbroken():
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table_of([TIMED, NOT_TIMED], 80))
    text = console.export_text()
    assert "231.0 / 124.0 / 100.0" in text and "2.31× / 1.24×" in text
    assert "…" not in text


def test_a_picture_loads_nothing_from_elsewhere(tmp_path, capsys):
    print_reports([TIMED], tmp_path / "table.svg")
    assert "2.31×" in capsys.readouterr().out
    assert "@font-face" not in (tmp_path / "table.svg").read_text("utf-8")


def test_a_speedup_over_recorded_shapes_says_so(capsys):
    further = [
        schema.ShapeMeasurement([], eager=timing(50.0), kernel=timing(20.0), calls=12000),
        schema.ShapeMeasurement([], eager=timing(11.0), kernel=timing(10.0), calls=6000),
    ]
    mix = schema.RecordedMix("train.py", 0.97, ["float32[9, 32]: the time was over"])
    mixed = task("f.py::F", schema.Measurement([SHAPE, *further], schema.Device("H100", "cuda"), recorded=mix))
    assert row(mixed)[4:6] == ["231.0 / 124.0 / 100.0", "2.22× / 1.24×"]
    print_reports([mixed])
    said = " ".join(capsys.readouterr().out.split())
    assert "F: 2.22× over 2 recorded shapes of train.py, weighted by calls (97 % of its time there);" in said
    assert "recorded from train.py and not timed: float32[9, 32]: the time was over." in said
