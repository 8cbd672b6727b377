"""KernelBench's folders, in every form in which one may name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp import errors
from kernel_lsp.suites import kernelbench


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    names = {
        1: ["19_ReLU", "2_Standard_matrix_multiplication_", "12_Matmul_with_diagonal_matrices_"],
        2: ["80_Gemm_Max_Subtract_GELU", "14_Gemm_Divide_Sum_Scaling", "72_ConvTranspose3d_BatchNorm_AvgPool_AvgPool"],
        10: ["1_Late"],
    }
    for level, stems in names.items():
        folder = tmp_path / "bench" / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True)
        for stem in stems:
            (folder / f"{stem}.py").write_text("class Model: ...\n")
    (tmp_path / "bench" / "KernelBench" / "changelog").mkdir()
    (tmp_path / "bench" / "KernelBench" / "level1" / "notes.py").touch()
    (tmp_path / "bench" / "KernelBench" / "level1" / "3_no_python.txt").touch()
    return tmp_path / "bench"


def test_a_checkout_its_folder_and_its_levels_are_the_same_problems(checkout: Path) -> None:
    found = kernelbench.read([checkout])
    ids = [one.problem.id for one in found]
    assert ids == [
        "level1/2_Standard_matrix_multiplication_",
        "level1/12_Matmul_with_diagonal_matrices_",
        "level1/19_ReLU",
        "level2/14_Gemm_Divide_Sum_Scaling",
        "level2/72_ConvTranspose3d_BatchNorm_AvgPool_AvgPool",
        "level2/80_Gemm_Max_Subtract_GELU",
        "level10/1_Late",
    ]
    inner = checkout / "KernelBench"
    assert [one.problem.id for one in kernelbench.read([inner])] == ids
    levels = [inner / f"level{level}" for level in (10, 2, 1, 2)]
    assert [one.problem.id for one in kernelbench.read(levels)] == ids
    relu = next(one for one in found if one.problem.number == 19)
    assert (relu.problem.level, relu.problem.name, relu.problem.class_name) == (1, "19_ReLU", "Model")
    assert relu.problem.path == "KernelBench/level1/19_ReLU.py" and relu.folder / relu.problem.path == relu.file


def test_problems_of_one_id_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a/bench", "b/bench", "c/level1"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "1_P.py").touch()
    (tmp_path / "a" / "bench" / "2_Q.py").touch()
    a, b, level = (tmp_path / folder for folder in ("a/bench", "b/bench", "c/level1"))
    ids = [one.problem.id for one in kernelbench.read([a, b, level, a])]
    assert ids == ["a/bench/1_P", "b/bench/1_P", "2_Q", "level1/1_P"]
    (tmp_path / "b" / "other").mkdir()
    (tmp_path / "b" / "other" / "1_P.py").touch()
    ids = [one.problem.id for one in kernelbench.read([a, tmp_path / "b" / "other"])]
    assert ids == ["bench/1_P", "other/1_P", "2_Q"]


def test_a_folder_of_any_name_has_no_level(tmp_path: Path) -> None:
    (tmp_path / "7_Mine.py").touch()
    (found,) = kernelbench.read([tmp_path])
    assert (found.problem.id, found.problem.level, found.problem.number) == ("7_Mine", None, 7)


def test_a_kernel_file_is_no_problem(checkout: Path) -> None:
    kernel = checkout / "KernelBench" / "level1" / "19_ReLU_triton.py"
    kernel.write_text("# /// kernel-lsp\n# ///\n")
    assert "level1/19_ReLU_triton" not in {one.problem.id for one in kernelbench.read([checkout])}


def test_a_result_that_does_not_depend_on_the_input_is_known_and_nothing_else_of_a_graph(checkout: Path) -> None:
    traits = {one.problem.number: one.problem.trait for one in kernelbench.read([checkout]) if one.problem.level == 2}
    assert traits == {80: "constant", 14: "", 72: ""}


def test_a_problem_of_another_name_has_no_trait(tmp_path: Path) -> None:
    (tmp_path / "level2").mkdir()
    (tmp_path / "level2" / "80_Mine.py").touch()
    assert kernelbench.read([tmp_path])[0].problem.trait == ""


def test_no_folder_and_no_problems(tmp_path: Path) -> None:
    with pytest.raises(errors.SuiteFolderMissing, match="nowhere"):
        kernelbench.read([tmp_path / "nowhere"])
    with pytest.raises(errors.SuiteEmpty, match=r"<number>_<name>\.py"):
        kernelbench.read([tmp_path])
