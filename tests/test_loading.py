"""The lines that get the user's class: what they load, how often, and what a candidate may not make of them."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp import loading
from kernel_lsp.loading import import_lines, without
from kernel_lsp.validation.screening import screen

USER = "print('loaded', __name__)\nclass Model:\n    pass\n"


def written(module: str, file: str, alias: str = "Model") -> str:
    lines = import_lines(module, file, "Model", alias)
    return "\n".join(["import math", "", *lines, "", "", f"class ModelTriton({alias}):\n    pass\n"])


def run(program: str, cwd: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def project(tmp_path):
    """A file whose name is no identifier, and two kernel files that need it."""
    folder = tmp_path / "project"
    (folder / "kernels").mkdir(parents=True)
    (folder / "19_ReLU.py").write_text(USER)
    for name in ("one", "two"):
        (folder / "kernels" / f"{name}.py").write_text(written("19_ReLU", "../19_ReLU.py"))
    return folder


def test_an_import_statement_where_one_can_name_the_module():
    assert import_lines("a.b", "", "Model", "Model") == ["from a.b import Model"]
    assert all(len(line) <= 100 for line in import_lines("m", "../m.py", "Model", "Model"))
    assert import_lines("a.b", "", "Model", "EagerModel") == ["from a.b import Model as EagerModel"]


@pytest.mark.parametrize("name", ["it's.py", 'a "b".py', "back\\slash.py", "модель с.py"])
def test_every_name_of_a_file_is_written_so_that_it_is_read_again(name):
    text = written(name, f"../{name}", "EagerModel")
    loads = ast.parse(text).body[2]
    assert isinstance(loads, ast.Assign) and ast.unparse(loads.targets[0]) == "EagerModel"
    assert [argument.value for argument in loads.value.value.args] == [f"../{name}", name]


def test_kernel_files_share_one_module_also_with_an_import_by_name(project):
    (said,) = {*run("from kernels import one, two; assert one.Model is two.Model", project)}
    assert said == "loaded 19_ReLU"
    both = (
        "import importlib; m = importlib.import_module('19_ReLU'); from kernels import one; assert one.Model is m.Model"
    )
    assert run(both, project) == ["loaded 19_ReLU"]
    assert run("import pickle; from kernels import one; pickle.loads(pickle.dumps(one.Model()))", project)


def test_a_moved_folder_still_works_and_a_copy_has_a_module_of_its_own(project, tmp_path):
    copy = tmp_path / "elsewhere" / "copy"
    shutil.copytree(project, copy)
    program = f"""
import importlib.util
def load(path):
    spec = importlib.util.spec_from_file_location("k", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
a, b, c = load({str(project / "kernels/one.py")!r}), load({str(copy / "kernels/one.py")!r}), load({str(copy / "kernels/two.py")!r})
assert a.Model is not b.Model and b.Model is c.Model
"""
    first, second = run(program, Path("/"))
    assert first == "loaded 19_ReLU" and second.startswith("loaded 19_ReLU_")
    shutil.rmtree(project)
    assert run("from kernels import one", copy) == ["loaded 19_ReLU"]


def test_a_kernels_folder_that_is_a_link(project, tmp_path):
    os.rename(project / "kernels", tmp_path / "kept")
    (project / "kernels").symlink_to(tmp_path / "kept")
    assert run("from kernels import one", project) == ["loaded 19_ReLU"]


def test_a_file_that_fails_is_not_left_half_loaded(project):
    (project / "19_ReLU.py").write_text("import sys\nprint(1)\nraise ValueError('mine')\n")
    program = """
for _ in range(2):
    try:
        from kernels import one
    except ValueError as error:
        print(error)
"""
    assert run(program, project) == ["1", "mine", "1", "mine"]


def test_the_lines_pass_the_screening_and_nothing_near_them_does():
    text = written("19_ReLU", "../19_ReLU.py")
    own = without(text, "19_ReLU")
    assert screen(own, "ModelTriton") is None
    assert own.count("\n") == text.count("\n") and own.endswith(text[-30:])
    reason, line = screen(without(text, "another"), "ModelTriton")
    assert "importlib" in reason and "importlib" in text.split("\n")[line - 1]
    for changed in (
        text.replace("return module", "return __import__('os')"),
        text + "\n_load_module('/tmp/x.py', 'x')\n",
        text + "\nload = _load_module\n",
        text.replace(".Model\n", ".Model\nOther = _load_module('../19_ReLU.py', '19_ReLU').Other\n"),
        text.replace('"19_ReLU")', '"19_ReLU", *[])'),
        text + "\ndef f():\n    import importlib\n",
    ):
        assert changed != text and screen(without(changed, "19_ReLU"), "ModelTriton") is not None
    assert without("def f(:", "m") == "def f(:"


BODY = "import torch\n\nfrom blocks import Block as Block_module\n\n\nclass BlockTriton(Block_module):\n    pass\n"


def test_the_plain_import_comes_back():
    both = loading.from_both(BODY, "blocks", "..")
    assert "    from ..blocks import Block as Block_module\n" in both and both != BODY
    assert loading.from_one(both) == BODY and loading.from_one(BODY) == BODY


def test_only_a_folder_that_a_program_can_import_from_has_two_ways():
    assert "from .blocks import" in loading.from_both(BODY, "blocks", ".")
    assert "from ...src.blocks import" in loading.from_both(BODY, "blocks", "../../src")
    for module, folders in (("blocks", "../my-src"), ("19_blocks", ".."), ("other", ".."), ("blocks", "../a/..")):
        assert loading.from_both(BODY, module, folders) == BODY


@pytest.mark.parametrize(
    ("path", "module", "kernel"),
    [
        (["models"], "blocks", "kernels.block_triton"),
        (["models", "models/kernels"], "blocks", "block_triton"),
        (["."], "models.blocks", "models.kernels.block_triton"),
        ([".", "models"], "models.blocks", "models.kernels.block_triton"),
        ([".", "models"], "blocks", "kernels.block_triton"),
    ],
    ids=["inside", "beside the kernel", "above", "both, from above", "both, from inside"],
)
def test_the_kernel_derives_from_the_class_that_the_program_has(tmp_path, path, module, kernel):
    (tmp_path / "models" / "kernels").mkdir(parents=True)
    (tmp_path / "models" / "blocks.py").write_text("class Block:\n    pass\n")
    body = BODY.replace("import torch\n\n", "")
    (tmp_path / "models" / "kernels" / "block_triton.py").write_text(loading.from_both(body, "blocks", ".."))
    program = f"import {module} as own, {kernel} as kernel; assert kernel.BlockTriton.__mro__[1] is own.Block"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(tmp_path / folder) for folder in path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=60)
    swapped = f"import {kernel} as kernel, {module} as own; assert kernel.BlockTriton.__mro__[1] is own.Block"
    subprocess.run([sys.executable, "-c", swapped], check=True, env=environment, timeout=60)


@pytest.mark.parametrize(
    ("module", "kernel"), [("models.blocks", "kernels.block_triton"), ("blocks", "models.kernels.block_triton")]
)
def test_a_program_that_imports_one_from_above_and_one_from_inside_has_two_modules(tmp_path, module, kernel):
    """The limit that the README states: the state dict fits, ``isinstance`` does not."""
    (tmp_path / "models" / "kernels").mkdir(parents=True)
    (tmp_path / "models" / "blocks.py").write_text("class Block:\n    pass\n")
    body = BODY.replace("import torch\n\n", "")
    (tmp_path / "models" / "kernels" / "block_triton.py").write_text(loading.from_both(body, "blocks", ".."))
    program = f"import {module} as own, {kernel} as kernel; base = kernel.BlockTriton.__mro__[1]; print(base is own.Block, base.__name__)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(tmp_path / "models")])}
    ended = subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment, timeout=60, capture_output=True, text=True
    )
    assert ended.stdout == "False Block\n"
