"""The table: what it says of a timed kernel, of one that was not timed, and of one that is not there."""

import io
import re
import types

import pytest
from rich.console import Console

from kernel_lsp import class_schema, errors, schema
from kernel_lsp.checking.records import Checked, Outcome
from kernel_lsp.commands import check
from kernel_lsp.commands.print_reports import print_reports
from kernel_lsp.commands.report_lines import Surroundings, footer, reason_of
from kernel_lsp.commands.report_table import columns_for, errors_text, names, table_of
from kernel_lsp.commands.run_jobs import Task
from kernel_lsp.errors import surface
from kernel_lsp.validation import plan


def timing(median: float) -> schema.Timing:
    return schema.Timing(median, median, median, 50)


def task(name: str, measurement: schema.Measurement | None, status="ok", error=None) -> Task:
    kernel = schema.CompiledKernel("k", "cuda:90", registers=64, spills=0, shared=98304)
    verdict = schema.Verdict(
        status, error=1e-7, eager_error=2e-7, kernels=[kernel], reason="" if status == "ok" else "off by 2"
    )
    candidate = schema.Candidate("", "synthesizer", note="3 of 4 ops in Triton")
    report = schema.Report(schema.Target("", name.partition("::")[2]), chosen=0 if status == "ok" else None)
    report.candidates = [schema.Validated(candidate, verdict, measurement)]
    report.seconds = {"report": 3.21}
    return Task(name, None, types.SimpleNamespace(report=report, state="done"), error)


SHAPE = schema.ShapeMeasurement([], eager=timing(231.0), compiled=timing(124.0), kernel=timing(100.0))
TIMED = task("a.py::A", schema.Measurement([SHAPE], schema.Device("H100", "cuda")))
NOT_TIMED = task("b.py::B", schema.Measurement(missing="no CUDA GPU here: torch is built without CUDA"))


def printed(tasks: list[Task], width: int = 132) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table_of(tasks, width))
    return console.export_text()


def test_a_timed_kernel_shows_times_and_speedups():
    (line,) = [line for line in printed([TIMED]).splitlines() if line.strip().startswith("A ")]
    cells = ["A", "ok", "3 of 4", "1.0e-07 (2.0e-07)", "64 / 0 / 96K", "231.0 / 124.0 / 100.0", "2.31× / 1.24×", "3.2"]
    assert re.split(r" {2,}", line.strip()) == cells


def test_what_was_not_timed_says_why_once():
    """Columns without a figure are not there; with one that was timed, the other's cells say why."""
    assert "µs" not in printed([NOT_TIMED]) and "speedup" not in printed([NOT_TIMED])
    assert "not measured" in printed([TIMED, NOT_TIMED]) and "no CUDA GPU" in printed([TIMED, NOT_TIMED])
    columns, _ = columns_for([NOT_TIMED, NOT_TIMED], 132)
    said = footer([NOT_TIMED, NOT_TIMED], columns)
    assert said.count("Not measured: no CUDA GPU here: torch is built without CUDA.") == 1


def test_what_was_known_of_kernel_files_is_said_once_for_all_that_it_is_true_of(capsys):
    tasks = [task(f"{name}.py::{name}", None) for name in "ABC"]
    for one, before in zip(tasks, ["was validated (ok)", "holds no verdict", "was validated (ok)"], strict=True):
        one.report.before = before
    print_reports(tasks)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "the kernel file" in line] == [
        "A, C: the kernel file was validated (ok).",
        "B: the kernel file holds no verdict.",
    ]


def test_the_check_is_named_whose_error_was_the_largest():
    """But where it is the one on the example inputs."""
    tasks = [task(f"{name}.py::{name}", None) for name in "ABC"]
    checks = ("huge values", schema.EXAMPLE, "huge values")
    for one, name in zip(tasks, checks, strict=True):
        one.report.candidates[0].verdict.error_check = name
    said = footer(tasks, columns_for(tasks, 132)[0])
    error = f"{tasks[0].report.candidates[0].verdict.error:.2g}"
    assert f"Largest errors in other checks: A {error} (huge values); C {error} (huge values)." in said
    assert not [line for line in footer(tasks[1:2], columns_for(tasks, 132)[0]) if line.startswith("Largest error")]
    tasks[2].report.candidates[0].verdict.eager_error = 4.0
    (said,) = [line for line in footer(tasks, columns_for(tasks, 132)[0]) if line.startswith("Largest error")]
    assert said == f"Largest errors in other checks: A {error} (huge values); C {error} (huge values, eager's 4)."
    (said,) = footer(tasks[2:], columns_for(tasks, 132)[0])
    assert said == f"Largest error: {error} (eager's 4), in the check “huge values”."


def test_of_many_classes_the_worst_errors_are_in_one_line_of_the_terminal():
    tasks = [task(f"{name * 9}.py::{name * 9}", None) for name in "ABCDEFGH"]
    for size, one in enumerate(tasks):
        verdict = one.report.candidates[0].verdict
        verdict.error, verdict.error_check = 1e-3 * 2**size, "huge values"
    columns, _ = columns_for(tasks, 80)
    (said,) = [line for line in footer(tasks, columns, Surroundings(width=80)) if line.startswith("Largest errors")]
    assert said == "Largest errors in other checks: HHHHHHHHH 0.13 (huge values); 7 more with --json."
    (wide,) = [line for line in footer(tasks, columns, Surroundings(width=400)) if line.startswith("Largest errors")]
    assert wide.startswith("Largest errors in other checks: HHHHHHHHH 0.13 (huge values); GGGGGGGGG 0.064 (huge")
    assert wide.endswith("AAAAAAAAA 0.001 (huge values).")


def test_the_table_has_the_error_on_the_example_inputs_where_it_is_known():
    one = task("a.py::A", None)
    verdict = one.report.candidates[0].verdict
    verdict.error, verdict.eager_error, verdict.error_check = 1.1, 1.1, "tiny values"
    assert errors_text(verdict) == "1.1e+00 (1.1e+00)"
    verdict.example_error, verdict.example_eager_error = 2e-7, 3e-7
    assert errors_text(verdict) == "2.0e-07 (3.0e-07)" and errors_text(verdict, eager=False) == "2.0e-07"
    (said,) = footer([one], columns_for([one], 132)[0])
    assert said == "Largest error: 1.1 (eager's 1.1), in the check “tiny values”."


def test_sizes_at_which_a_kernel_is_fixed_are_in_a_line_of_each_class():
    tasks = [task(f"{name}.py::{name}", None) for name in "AB"]
    fixed = class_schema.TensorSpec("x", [32], "float32", dynamic=[None], narrowed=[0])
    envelope = "def _in_envelope(self, x):\n    return x.dim() == 1 and x.shape[0] == 32\n"
    tasks[0].report.specimen = class_schema.Specimen("A", "a", "", "", [fixed])
    tasks[0].report.candidates[0].candidate.source = envelope
    assert footer(tasks[:1], [])[0] == "Kernel only where x.shape[0] == 32; other calls run eager."
    assert footer(tasks, [])[0] == "A: kernel only where x.shape[0] == 32; other calls run eager."


def test_kernel_files_in_the_folder_itself_are_in_a_folder_that_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tasks = [task(f"{name}.py::{name}", None) for name in "AB"]
    for one, folder in zip(tasks, (tmp_path, tmp_path / "kernels"), strict=True):
        one.report.file = str(folder / "a_triton.py")
    assert footer(tasks, columns_for(tasks, 132)[0])[-1] == "2 kernel files in ./, kernels/."


def test_each_of_several_examples_has_a_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "132")
    one = task("a.py::A", None)
    one.report.candidates[0].verdict.examples = [
        schema.OfExample("x: float32[8, 4]", error=1e-7, eager_error=2e-7, eager=timing(9.0), kernel=timing(4.5)),
        schema.OfExample("x: float32[1, 4]", "slower", "it is slower than eager"),
        schema.OfExample("x: int64[8]", "eager"),
    ]
    print_reports([one])
    said = [line.strip() for line in capsys.readouterr().out.splitlines() if ", example " in line]
    assert said == [
        "A, example 1 (x: float32[8, 4]): ok, error 1.0e-07 (eager's 2.0e-07), 2.00× eager (9.0 → 4.5 µs)",
        "A, example 2 (x: float32[1, 4]): slower: it is slower than eager",
        "A, example 3 (x: int64[8]): runs eagerly, no envelope holds for it",
    ]


def test_the_header_says_what_the_figures_of_a_kernel_are():
    for width, there in ((132, True), (70, False)):
        header = " ".join(printed([TIMED], width).partition("─")[0].split())
        assert all((words in header) == there for words in ("registers", "spills", "in bytes", "for sm_90"))


#: what the validation of a module without a GPU cannot check, and two layouts whose output has other strides
LIMITS = [
    *plan.INTERPRETER_LIMITS,
    plan.CUT_DOWN,
    *(
        f"the strides of its output for inputs in another memory layout ({layout} memory): in memory it is contiguous, "
        f"eager's is in the order of dims {order}"
        for layout, order in (("transposed", "0, 2, 1"), ("permuted", "1, 0, 2"))
    ),
]


def below_the_table(out: str) -> list[str]:
    lines = [line.rstrip() for line in out.splitlines() if line.strip()]
    return lines[next(i for i, line in enumerate(lines) if "RMSNorm" in line) + 1 :]


def test_at_most_five_lines_stand_below_the_table_of_one_class(capsys, monkeypatch, tmp_path):
    """At 80 columns, each of which says another thing."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    missing = "no CUDA GPU here: torch 2.13.0+cpu is built without CUDA."
    one = task("rms_norm.py::RMSNorm", schema.Measurement(missing=missing))
    one.report.device = schema.Device("Triton interpreter (CPU)", "interpreter", torch="2.13.0+cpu", triton="3.7.1")
    one.report.file = str(tmp_path / "kernels/rms_norm_triton.py")
    verdict = one.report.candidates[0].verdict
    verdict.limits, verdict.error_check = LIMITS, "NaN among the inputs"
    print_reports([one], page="page.html")
    below = [
        "Validated on Triton interpreter (CPU), torch 2.13.0+cpu, triton 3.7.1.",
        "Largest error: 1e-07 (eager's 2e-07), in the check “NaN among the inputs”.",
        "Not measured: no CUDA GPU here: torch 2.13.0+cpu is built without CUDA.",
        "Not checked: races; TF32 and fast math; the example's sizes; output strides.",
    ]
    assert below_the_table(capsys.readouterr().out) == [
        *below,
        "The kernel is kernels/rms_norm_triton.py. The report is page.html.",
    ]
    one.report.before = "was validated on this machine on 2026-01-01 (correct, not timed)"  # and is that again
    checked = Checked(tmp_path / "kernels/rms_norm_triton.py", not_measured=missing.rstrip("."))
    check._print_text(Outcome(tmp_path, [checked]), [one], None)
    assert below_the_table(capsys.readouterr().out) == [
        *below,
        "kernels/rms_norm_triton.py: no problems; regressions not measured.",
    ]
    one.report.before = "was validated on this machine on 2026-01-01 (2.31× eager, 50.0 µs)"
    print_reports([one])
    assert below_the_table(capsys.readouterr().out)[0].startswith("The kernel file was validated on this machine")
    verdict.limits = [*LIMITS, "train mode: it draws other random numbers than eager"]
    print_reports([one], more="--format json")
    assert "Not checked: races; TF32 and fast math; 3 more with --format json." in capsys.readouterr().out


def test_sources_are_told_of_where_a_model_was_asked(capsys):
    some = task("e.py::E", None)
    some.report.sources = [schema.Source("recall", problem="nothing is in the store"), schema.Source("synthesizer")]
    print_reports([some])
    assert "recall" not in capsys.readouterr().out
    some.report.sources.append(schema.Source("openai", problem="no server is named (kernelLsp.openai.baseUrl)"))
    with surface.command_line([]):
        print_reports([some])
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "recall: nothing is in the store." in said
        and "(base-url under [tool.kernel-lsp.openai] in pyproject.toml)" in said
    )


def test_a_reason_names_no_setting_of_an_editor(capsys):
    some = task("e.py::E", None, "wrong")
    some.report.candidates[0].verdict.reason = "no server is named (kernelLsp.openai.baseUrl)"
    with surface.command_line([]):
        print_reports([some])
    assert "kernelLsp" not in capsys.readouterr().out


def test_limits_are_told_once_and_without_their_reasons():
    some = [task("e.py::E", None), task("f.py::F", None)]
    for one in some:
        one.report.candidates[0].verdict.limits = [
            "races (the interpreter runs one after another)",
            "time (no CUDA GPU here)",
        ]
    assert footer(some, []) == ["Not checked: races."]


def test_indices_that_are_not_checked_are_told_of_some_classes_too():
    some = [task(f"{name}.py::{name}", None) for name in "EFGHI"]
    for one in some:
        one.report.candidates[0].verdict.limits = ["races (the interpreter runs one after another)"]
    some[1].report.candidates[0].verdict.limits.insert(0, plan.OUT_OF_RANGE)
    assert footer(some, []) == ["Not checked: indices out of range in F; races."]
    assert footer(some[1:2], []) == ["Not checked: indices out of range; races."]
    for one in some[2:]:
        one.report.candidates[0].verdict.limits.append(plan.OUT_OF_RANGE)
    assert footer(some, []) == ["Not checked: indices out of range in 4 classes; races."]


def test_a_compiler_that_was_stopped_has_a_line_of_its_own():
    some = [task("e.py::E", None), task("f.py::F", None)]
    late = schema.NOT_COMPILED + schema.COMPILING_STOPPED.format(seconds=55)
    for one in some:
        one.report.candidates[0].verdict.limits = ["races (the interpreter runs one after another)", late]
    why = "stopped after 55 s; validate again while the machine is less busy."
    assert footer(some, []) == ["Not checked: races.", f"Not compiled for a GPU (E, F): {why}"]
    assert f"Not compiled for a GPU: {why}" in footer(some[:1], [])


LONG = "a.py::TheLongNameOfSomeAttentionBlockWithRotaryEmbeddingAndSlidingWindowOfAnOldModel"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132])
@pytest.mark.parametrize("name", ["a.py::A", "a.py::MultiHeadLatentAttentionWithCache", LONG])
def test_names_stay_whole_and_rows_unbroken(name: str, width: int):
    other = task(name, TIMED.report.candidates[0].measurement)
    text = printed([other, NOT_TIMED], width)
    assert max(map(len, text.splitlines())) <= width
    whole = name.partition("::")[2]
    assert whole in (text if len(whole) <= width else text.replace("\n", ""))
    assert "2.31× / 1.24×" in text and "…" not in text


def test_a_name_that_leaves_no_room_has_a_line_of_its_own():
    lines = [
        line.strip() for line in printed([task(LONG, None), task("b.py::B", None)], 80).splitlines() if line.strip()
    ]
    at = lines.index(LONG.partition("::")[2])
    assert lines[at + 1].startswith("ok") and lines[at + 2] == "B" and lines[at + 3].startswith("ok")


def test_checks_that_were_left_out_are_counted(capsys):
    some = task("e.py::E", None)
    verdict = some.report.candidates[0].verdict
    verdict.checks = [schema.Check(f"check {i}", True) for i in range(10)]
    print_reports([some])
    assert "skipped" not in capsys.readouterr().out
    verdict.skipped = ["float64", "train mode"]
    print_reports([some])
    assert "Checks: 10 passed, 2 skipped (--thorough makes all of them)." in capsys.readouterr().out


def test_what_is_not_there_says_why():
    missing = Task("c.py::C", None, error=errors.NoExampleInputs(class_name="C"))
    assert "no kernel" in printed([missing])
    assert "get_inputs_C()" in reason_of(missing)
    assert reason_of(task("d.py::D", None, "wrong")) == "off by 2"
    assert reason_of(TIMED) == ""


def test_classes_of_one_name_are_told_apart_by_their_files():
    assert names([TIMED, NOT_TIMED]) == ["A", "B"]
    assert names([TIMED, task("b.py::A", None)]) == ["a.py::A", "b.py::A"]


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
    assert "231.0 / 124.0 / 100.0" in printed([mixed]) and "2.22× / 1.24×" in printed([mixed])
    print_reports([mixed])
    said = " ".join(capsys.readouterr().out.split())
    assert "F: 2.22× over 2 recorded shapes of train.py, weighted by calls (97 % of its time there);" in said
    assert "recorded from train.py and not timed: float32[9, 32]: the time was over." in said
