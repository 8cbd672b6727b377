"""What follows from recordings: example inputs, words, and which calls a kernel leaves to eager."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp.errors import RecordingNotWritten
from kernel_lsp.recording import calls_left_to_eager, examples, files, launching
from tests.recording.made import run_of, shape, tensor


def test_words_say_where_the_time_is(tmp_path: Path) -> None:
    file = tmp_path / "double.py"
    frequent = [shape(tensor("float32[8, 512]"), calls=5000), shape(tensor("float32[8, 256]"), calls=4700)]
    rare = [shape(tensor(f"float32[8, {n}]"), calls=50) for n in range(1, 7)]
    recorded = examples.recorded_of(file, [run_of(file, rare + frequent, forward_seconds=0.8)])["Double"]
    assert examples.words(recorded) == (
        "8 shapes recorded from train.py, 97 % of the time in two. 12 % of train.py's forward."
    )


def test_runs_of_several_scripts_are_added_up_and_the_newest_of_one_counts(tmp_path: Path) -> None:
    file, base = tmp_path / "double.py", tmp_path / "store"
    files.keep(run_of(file, [shape(tensor("float32[2]"), calls=7)], at="2026-01-01"), base)
    files.keep(run_of(file, [shape(tensor("float32[2]"), calls=50)], at="2026-01-02"), base)  # in its place
    other = run_of(file, [shape(tensor("float32[2]"), calls=1), shape(tensor("float32[3]"), calls=2)], at="2026-01-03")
    other.command, other.script = "python test.py", "test.py"
    files.keep(other, base)
    found = examples.recorded_of(file, files.find(file, base))["Double"]
    assert found.calls == 53 and [s.calls for s in found.shapes] == [51, 2]
    assert found.scripts == ["test.py", "train.py"]
    assert files.find(tmp_path.parent / "elsewhere.py", base) == []


def test_damaged_and_newer_files_are_passed_over(tmp_path: Path) -> None:
    file, base = tmp_path / "double.py", tmp_path / "store"
    path = files.keep(run_of(file, [shape(tensor("float32[2]"))]), base)
    assert path is not None
    (path.parent / "half.json").write_text(path.read_text()[:100])
    (path.parent / "newer.json").write_text(path.read_text().replace('"format": 1', '"format": 2'))
    (path.parent / "other.json").write_text('{"format": 1, "classes": 3}')
    assert len(files.find(file, base)) == 1


def test_a_place_that_cannot_be_written_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(RecordingNotWritten, match="could not be written"):
        files.keep(run_of(tmp_path / "double.py", []), tmp_path / "store")


def test_the_shape_with_the_most_time_becomes_the_example(tmp_path: Path) -> None:
    file = tmp_path / "double.py"
    slow = shape(tensor("float32[64, 64]"), {"value": 2}, calls=10, microseconds=1000.0)
    again = shape(tensor("float32[64, 64]"), {"value": 2}, calls=5, microseconds=1000.0, modes=["training"])
    often = shape(tensor("float32[2]"), {"value": 2}, calls=500)
    config = shape(tensor("float32[2]"), {"other": "shop.Config"}, calls=90000)
    table = examples.table_of(examples.recorded_of(file, [run_of(file, [often, config, again, slow])])["Double"])
    assert table is not None and table["from"] == "train.py"
    assert (table["args"][0]["tensor"], table["init"]) == ("float32[64, 64]", {"args": [], "kwargs": {}})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (shape(tensor("float32[2]"), {"other": "shop.Config"}), "its forward takes a Config"),
        (shape(tensor("float32[2]"), init=None), "its constructor's arguments were not seen"),
        (
            shape(tensor("float32[2]"), init={"args": [{"other": "shop.Config"}], "kwargs": {}}),
            "its constructor takes a Config",
        ),
        (shape({"value": 2}), "forward takes no tensors"),
        (shape({"list": [tensor("float32[2]")]}), ""),
    ],
)
def test_why_calls_cannot_be_examples(given, why: str) -> None:
    assert examples.why_not_usable(examples.Recorded("Double", [given])) == why


HEADER = {
    "envelope": {
        "inputs": ["x: float32[s0, s1, 64]", "mask: bool[s0, s1]"],
        "sizes": ["s0: 2 or more", "s1: 2 to 4096, 8 in the example"],
    }
}


@pytest.mark.parametrize(
    ("x", "mask", "further", "why"),
    [
        ("float32[1, 8, 64]", "bool[1, 8]", {}, ""),
        ("float16[2, 8, 64]", "bool[2, 8]", {}, "float16"),
        ("float32[2, 8, 32]", "bool[2, 8]", {}, "float32[2, 8, 32], not float32[s0, s1, 64]"),
        ("float32[2, 8, 64]", "bool[2, 9]", {}, "bool[2, 9], where s1 is 8"),
        ("float32[2, 5000, 64]", "bool[2, 5000]", {}, "s1 = 5000"),
        ("float32[8, 64]", "bool[8]", {}, "2 dimensions"),
        ("float32[2, 8, 64]", "bool[2, 8]", {"modes": ["grad"], "trained": True}, "gradients"),
        ("float32[2, 8, 64]", "bool[2, 8]", {"modes": ["grad"]}, ""),
        ("float32[2, 8, 64]", "bool[2, 8]", {"modes": ["autocast bfloat16"]}, "autocast bfloat16"),
    ],
)
def test_calls_outside_of_a_header_s_envelope(x: str, mask: str, further: dict, why: str) -> None:
    assert calls_left_to_eager.why_outside(HEADER, shape(tensor(x), kwargs={"mask": tensor(mask)}, **further)) == why


def test_a_call_in_any_envelope_of_a_header_is_inside() -> None:
    further = ["x: float32[s0, 1, 64]; mask: bool[s0, 1]; scale=1.0", "x: bfloat16[s0, 64]; mask: bool[s0]; s0: 4 to 8"]
    header = {"envelope": {**HEADER["envelope"], "inputs": ["x: float32[s0, 9, 64]", "mask: bool[s0, 9]"]}}
    header["envelope"]["further"] = further

    def why(x: str, mask: str) -> str:
        return calls_left_to_eager.why_outside(header, shape(tensor(x), kwargs={"mask": tensor(mask)}))

    assert why("float32[2, 9, 64]", "bool[2, 9]") == why("float32[2, 1, 64]", "bool[2, 1]") == ""
    assert why("bfloat16[5, 64]", "bool[5]") == "" and why("bfloat16[9, 64]", "bool[9]") == "bfloat16"
    assert why("float32[2, 8, 64]", "bool[2, 8]") == "float32[2, 8, 64], not float32[s0, 9, 64]"


def test_a_header_that_does_not_tell_is_silent() -> None:
    assert calls_left_to_eager.why_outside({}, shape(tensor("float32[2]"))) == ""
    assert (
        calls_left_to_eager.why_outside(
            {"envelope": {"inputs": ["x: float32[4]", "and 3 more"]}}, shape(tensor("int8[2]"))
        )
        == ""
    )


@pytest.mark.parametrize(
    ("command", "script"),
    [
        (["python", "train.py", "--steps", "3"], "train.py"),
        (["python", "-m", "shop.train"], "shop.train"),
        (["torchrun", "--nproc-per-node", "2", "src/train.py"], "train.py"),
        (["python", "-m", "torch.distributed.run", "a/train.py"], "train.py"),
        (["/opt/bin/serve"], "serve"),
    ],
)
def test_what_a_program_is_called(command: list[str], script: str) -> None:
    assert launching.script_of(command) == script
