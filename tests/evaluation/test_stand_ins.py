"""Stand-ins fill what was not timed, and only where eager agrees."""

import json
from pathlib import Path

import pytest

from kernel_lsp import schema
from kernel_lsp.errors import StandInsInvalid
from kernel_lsp.evaluation.stand_ins import fill, mark, read

from .made import report, validated


def write(path, *entries):
    path.write_text("\n".join(json.dumps(entry) for entry in entries) + "\n\n", "utf-8")
    return path


def test_a_file_of_milliseconds_becomes_microseconds(tmp_path):
    entries = [
        {"problem": "level1/19_ReLU.py", "eager_ms": 2.0, "compile_ms": 1.5, "flops": 0},
        {"problem": "level1/20_LeakyReLU.py", "eager_ms": 2.0, "compile_ms": None, "error": "it failed"},
    ]
    found = read(write(tmp_path / "h100.jsonl", *entries))
    assert found == {
        "level1/19_ReLU": {"eager": 2000.0, "default": 1500.0},
        "level1/20_LeakyReLU": {"eager": 2000.0},
    }


def test_times_are_of_one_mode(tmp_path):
    entries = [
        {"problem": "level1/33_BatchNorm.py", "eager_ms": 2.0, "compile_ms": 1.5},
        {"problem": "level1/33_BatchNorm.py", "eager_ms": 4.0, "compile_ms": 3.0, "mode": "train"},
    ]
    path = write(tmp_path / "h100.jsonl", *entries)
    assert read(path) == {"level1/33_BatchNorm": {"eager": 2000.0, "default": 1500.0}}
    assert read(path, "train") == {"level1/33_BatchNorm": {"eager": 4000.0, "default": 3000.0}}


def test_the_times_of_the_benchmark_of_torch_compile_are_taken(tmp_path):
    """It writes torch.compile's mode into each line; of the other modes none stands for the default."""
    entries = [
        {"problem": "level1/33_BatchNorm.py", "mode": mode, "eager_ms": 2.0, "compile_ms": time}
        for mode, time in (("default", 1.5), ("max-autotune", 1.0))
    ]
    path = write(tmp_path / "torch-compile.jsonl", *entries)
    assert read(path) == {"level1/33_BatchNorm": {"eager": 2000.0, "default": 1500.0}} and read(path, "train") == {}


@pytest.mark.parametrize("line", ["{", "[]", '{"eager_ms": 1}', '{"problem": 3}', '{"problem": "a", "eager_ms": "x"}'])
def test_a_line_that_is_none_is_named(tmp_path, line):
    path = tmp_path / "x.jsonl"
    path.write_text('{"problem": "a.py", "eager_ms": 1.0}\n' + line)
    with pytest.raises(StandInsInvalid, match="line 2"):
        read(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(StandInsInvalid, match="No such file"):
        read(tmp_path / "none.jsonl")


def test_a_stand_in_fills_what_was_not_timed():
    one = report(validated(200))
    assert fill(one, {"eager": 209.0, "default": 120.0}, mark(Path("/somewhere/h100.jsonl"))) == "filled"
    shape = one.candidates[0].measurement.shapes[0]
    assert shape.compiled == schema.Timing(120.0, 120.0, 120.0, 0) and shape.kept == {
        "default": "stand-in: from h100.jsonl"
    }


@pytest.mark.parametrize(
    ("about", "stand_in", "said"),
    [
        (report(validated(200)), {"eager": 211.0, "default": 120.0}, "disagrees"),
        (report(validated(200)), {"eager": 189.0, "default": 120.0}, "disagrees"),
        (report(validated(200, default=110)), {"eager": 200.0, "default": 120.0}, "measured"),
        (report(validated(200)), {"eager": 200.0}, "unknown"),
        (report(validated(200)), {"default": 120.0}, "unknown"),
        (report(validated()), {"eager": 200.0, "default": 120.0}, "unknown"),
        (report(), {"eager": 200.0, "default": 120.0}, "unknown"),
    ],
)
def test_otherwise_nothing_changes(about, stand_in, said):
    before = schema.to_json(about)
    assert fill(about, stand_in, "stand-in: X") == said
    assert schema.to_json(about) == before
