from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_lsp.errors import (
    Cancelled,
    ForwardFailed,
    ImportFailed,
    InternalError,
    NoExampleInputs,
    NotExportable,
    NothingToLower,
    PackageMissing,
    from_json,
    surface,
)
from kernel_lsp.errors.surface import command_line
from kernel_lsp.server.control.commands import _refused


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ("", "is aten.sort. Leave"),
        (
            "the size of its result depends on the data.",
            "is aten.sort: the size of its result depends on the data. Leave",
        ),
        ("It computes nothing.", "is aten.sort: it computes nothing. Leave"),
        ("NaN handling", "is aten.sort: NaN handling. Leave"),
    ],
)
def test_what_stopped_the_synthesizer_reads_as_a_sentence(detail: str, expected: str) -> None:
    assert expected in str(NothingToLower(class_name="A", op="aten.sort", detail=detail))


def test_what_was_not_lowered_goes_over_the_wire() -> None:
    error = NothingToLower(class_name="A", op="aten.sort.default", kept={"aten.sort": 2})
    sent = error.to_json()
    assert sent["data"] == {"op": "aten.sort.default", "kept": {"aten.sort": 2}}
    assert from_json(sent).values == sent["data"] and str(from_json(sent)) == str(error)
    assert "data" not in Cancelled().to_json()


def test_a_fault_of_its_own_says_where_the_log_is() -> None:
    error = from_json(InternalError(detail="KeyError: 1").to_json())
    assert "Show Logs" in str(error)
    with command_line(["verbose"]):
        assert str(error).endswith("Please report it with what the same command prints with -v.")


def test_a_line_that_is_not_known_is_not_written() -> None:
    said = str(ForwardFailed(class_name="A", detail="no")), str(NotExportable(class_name="A", detail="no", line=3))
    assert said[0].startswith("A.forward raised: no.") and said[1].startswith(
        "torch.export cannot trace A.forward (line 3): no."
    )


def test_the_advice_follows_what_was_raised() -> None:
    def imported(detail: str) -> str:
        return str(ImportFailed(path="a.py", line=3, detail=detail))

    missing = "ModuleNotFoundError: No module named 'timm'"
    assert imported(missing).endswith("or choose the interpreter that has it (kernelLsp.interpreter).")
    assert imported("SystemExit: 2").endswith('behind if __name__ == "__main__".')
    other = imported("FileNotFoundError: config.yaml")
    assert "Correct what the file does there as it is imported" in other and "Fix the import" not in other
    raised = str(ForwardFailed(class_name="A", line=3, detail=missing))
    assert raised.endswith("Install it, or choose the interpreter that has it (kernelLsp.interpreter).")
    assert str(ForwardFailed(class_name="A", detail="ValueError: no")).endswith("example inputs fit the module.")


def test_where_little_room_is_the_details_come_last() -> None:
    error = ImportFailed(path="a.py", line=3, detail="No module named 'einops'")
    for one in (error, from_json(error.to_json())):  # also that of another process
        assert one.detail_last() == (
            "Importing a.py failed at line 3. Fix the import, or choose the interpreter that has it "
            "(kernelLsp.interpreter). Details: No module named 'einops'"
        )
    refused = _refused(error)  # the answer to a command of an editor
    assert str(refused).endswith("Details: No module named 'einops'") and refused.data["message"] == str(error)
    missing = PackageMissing(interpreter="python", package="torch", command="pip install torch")
    assert missing.detail_last() == str(missing)


def test_a_part_is_told_whose_inputs_there_are() -> None:
    said = str(NoExampleInputs(class_name="A.Norm", whole="Model", detail="ValueError: no."))
    assert said.startswith(
        "No example inputs for A.Norm, a part of Model: get_inputs() is for Model, and does not fit A.Norm (ValueError: no). "
        "Add get_inputs_A_Norm(), and get_init_inputs_A_Norm() if its constructor takes arguments, to the file"
    )
    assert "fit" not in str(NoExampleInputs(class_name="Norm", whole="Model"))


@pytest.fixture
def no_folders() -> Iterator[None]:
    yield
    surface.name_folders([])


@pytest.mark.usefixtures("no_folders")
def test_an_editor_is_told_of_files_from_its_folder_on(tmp_path: Path) -> None:
    text = f"{tmp_path}/app/model/a.py names b.py, /elsewhere/c.py and {tmp_path}/app2/d.py."
    assert surface.adapted(text) == text
    surface.name_folders([f"{tmp_path}/app"])
    assert surface.adapted(text) == f"model/a.py names b.py, /elsewhere/c.py and {tmp_path}/app2/d.py."
    surface.name_folders([f"{tmp_path}/app", f"{tmp_path}/app/model", f"{tmp_path}/app2"])
    assert surface.adapted(text) == "model/a.py names b.py, /elsewhere/c.py and app2/d.py."
    surface.name_folders(["/"])
    assert surface.adapted(text) == text


@pytest.mark.usefixtures("no_folders")
def test_folders_of_one_name_are_told_apart_by_those_above_them(tmp_path: Path) -> None:
    surface.name_folders([f"{tmp_path}/one/model", f"{tmp_path}/two/model", f"{tmp_path}/tests"])
    text = f"{tmp_path}/one/model/a.py, {tmp_path}/two/model/a.py, {tmp_path}/tests/a.py"
    assert surface.adapted(text) == "one/model/a.py, two/model/a.py, tests/a.py"
    # One that is another's end has its whole path.
    surface.name_folders(["/model", "/one/model"])
    assert surface.adapted("/model/a.py, /one/model/a.py") == "/model/a.py, one/model/a.py"


@pytest.mark.usefixtures("no_folders")
def test_a_program_in_an_editors_folder_keeps_its_path(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.touch(mode=0o755)
    surface.name_folders([str(tmp_path)])
    text = f"Run {program} -m pip install torch."
    assert surface.adapted(text) == text
