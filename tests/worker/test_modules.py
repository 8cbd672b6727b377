"""Files of every name and place, and the module that each of them is."""

from __future__ import annotations

import sys

import pytest

from kernel_lsp.specimen import modules
from tests.worker.worker_client import WorkerError

HEAD = "import torch\nfrom torch import nn\n"
MODEL = "class Model(nn.Module):\n    def forward(self, x):\n        return x * SCALE\n"
INPUTS = "def get_inputs():\n    return [torch.randn(4, 8)]\n"
ALONE = HEAD + "SCALE = 2\n" + MODEL + INPUTS


def importing(statement: str) -> str:
    return HEAD + statement + "\n" + MODEL + INPUTS


@pytest.mark.parametrize(
    ("name", "importable", "loading"),
    [
        ("rms_norm.py", True, None),
        ("модель.py", True, None),
        ("19_ReLU.py", False, "19_ReLU"),
        ("my-model.py", False, "my-model"),
        ("with space.py", False, "with space"),
        ("class.py", False, "class"),
        ("ﬁle.py", False, None),  # Python's parser reads the ligature as two letters, and looks for file.py
        ("types.py", False, None),
        ("code.py", False, None),
        ("torch.py", False, None),
        ("__main__.py", False, None),
        ("v1.5.py", False, None),
        ("script", False, None),
    ],
)
def test_what_an_import_statement_can_name(write, name, importable, loading):
    pytest.importorskip("torch")
    path = write("", name)
    assert modules.importable(path) is importable
    assert modules.loading_name(path) == (loading or modules.loading_name(path))
    if loading is None:  # no other file has it, and the folder may be moved
        assert modules.loading_name(path) not in sys.stdlib_module_names and "." not in modules.loading_name(path)
        assert modules.loading_name(path) == modules.loading_name(write("", f"elsewhere/{name}"))


@pytest.mark.parametrize(
    ("marker", "files", "path", "root", "dotted"),
    [
        (None, {"a/__init__.py": ""}, "a/m.py", ".", "a.m"),
        (None, {"a/__init__.py": ""}, "a/__init__.py", ".", "a"),
        (None, {"v1.0/__init__.py": ""}, "v1.0/m.py", "v1.0", "m"),
        ("pyproject.toml", {}, "a/m.py", "a", "m"),
        (None, {"a/b/m.py": "from .x import y"}, "a/b/m.py", "a", "b.m"),
        (None, {"a/b/m.py": "from ..x import y"}, "a/b/m.py", ".", "a.b.m"),
        ("pyproject.toml", {"a/b/m.py": "from .x import y"}, "a/b/m.py", ".", "a.b.m"),
        ("setup.py", {"src/a/b/m.py": "from .x import y"}, "src/a/b/m.py", "src", "a.b.m"),
        ("setup.py", {"src/a/b/__init__.py": "", "src/a/b/m.py": "from ..x import y"}, "src/a/b/m.py", "src", "a.b.m"),
        ("setup.py", {"src/a/b/__init__.py": "", "src/a/b/m.py": "from .x import y"}, "src/a/b/m.py", "src/a", "b.m"),
        ("setup.py", {"a/b/m.py": "import a.c"}, "a/b/m.py", ".", "a.b.m"),
        ("setup.py", {"a/b/m.py": "import a.c", "a/b/a.py": ""}, "a/b/m.py", "a/b", "m"),  # the neighbour is meant
        ("setup.py", {"json/b/m.py": "import json"}, "json/b/m.py", "json/b", "m"),
        (None, {"a/b/m.py": "import a.c"}, "a/b/m.py", "a/b", "m"),
    ],
)
def test_names_in_packages_with_and_without_init_files(write, tmp_path, marker, files, path, root, dotted):
    for name, text in {path: "", **({marker: ""} if marker else {}), **files}.items():
        write(text, name)
    assert modules.dotted_name(str(tmp_path / path)) == (str((tmp_path / root).resolve()), dotted)


@pytest.mark.parametrize(
    "name",
    [
        "19_ReLU.py",
        pytest.param("with space.py", marks=pytest.mark.slow),
        "модель.py",
        "inspect.py",
        "torch.py",
        pytest.param("v1.5.py", marks=pytest.mark.slow),
        pytest.param("script", marks=pytest.mark.slow),
        "a 'folder'\nof \"two\" lines/模型 'и' \"ü\"\n\\ 100%.py",
    ],
)
def test_a_class_of_a_file_of_any_name(worker, write, name):
    answer = worker.call("synthesize", path=write(ALONE, name), class_name="Model")
    source = answer["candidates"][0]["source"]
    if name == "модель.py":
        assert answer["specimen"]["file"] == "" and "from модель import Model" in source
        return
    assert answer["specimen"]["file"] == f"../{name.rpartition('/')[2]}"
    verdict = worker.call("validate", path=write(ALONE, name), class_name="Model", source=source, device="interpreter")
    assert verdict["verdict"]["status"] == "ok", verdict["verdict"]["reason"]


def test_a_kernel_file_finds_its_module_whatever_else_is_loaded_by_now(worker, write):
    path = write(ALONE, "norms.py")  # named by an import statement here; where a module norms is loaded, by its path
    source = worker.call("synthesize", path=path, class_name="Model")["candidates"][0]["source"]
    from kernel_lsp.loading import import_lines

    lines = "\n".join(import_lines(modules.loading_name(path), "../norms.py", "Model", "Model"))
    source = source.replace("from norms import Model", lines)
    assert "_load_module" in source
    verdict = worker.call("validate", path=path, class_name="Model", source=source, device="interpreter")
    assert verdict["verdict"]["status"] == "ok", verdict["verdict"]["reason"]


@pytest.mark.parametrize(
    ("files", "path", "statement"),
    [
        (["pkg/__init__.py", "pkg/inner/__init__.py"], "pkg/inner/7_x.py", "from ..scale import SCALE"),
        (["my-pkg/__init__.py"], "my-pkg/model.py", "from .scale import SCALE"),
        (["pyproject.toml", "src/pkg/__init__.py"], "src/pkg/model.py", "from pkg.scale import SCALE"),
        (["pyproject.toml", "src/pkg/__init__.py"], "bench/model.py", "from pkg.scale import SCALE"),
        (["pyproject.toml"], "pkg/inner/model.py", "from ..scale import SCALE"),
        (["pyproject.toml"], "pkg/inner/model.py", "from pkg.scale import SCALE"),
        ([], "pkg/2024-01-01.py", "from .scale import SCALE"),
    ],
)
def test_imports_within_packages(worker, write, files, path, statement):
    for name in files:
        write("", name)
    folder = next(f for f in ("src/pkg", "my-pkg", "pkg") if f in " ".join([*files, path]))
    write("SCALE = 2\n", f"{folder}/scale.py")
    full = write(importing(statement), path)
    assert worker.call("introspect", path=full, class_name="Model")["ops"] == {"aten.mul": 1}


def test_a_slice_of_a_file_that_no_import_statement_can_name(worker, write):
    write("SCALE = 2\n", "net/scale.py")
    path = write(importing("from .scale import SCALE"), "net/19_ReLU.py")
    subject = worker.call("slice", path=path, class_name="Model", seconds=60)["subject"]
    assert (subject["import_from"], subject["import_file"]) == ("net.19_ReLU", "../19_ReLU.py")
    assert "SCALE = 2" in subject["source"]


def test_where_the_kernel_lies_decides_the_path(worker, write, tmp_path):
    path, kernel = write(ALONE, "a/19_ReLU.py"), tmp_path / "out" / "deep" / "k_triton.py"
    assert worker.call("introspect", path=path, class_name="Model", kernel=str(kernel))["file"] == "../../a/19_ReLU.py"


def test_a_relative_import_that_python_could_not_do_either(worker, write):
    with pytest.raises(WorkerError) as caught:
        worker.call("introspect", path=write(importing("from ..nowhere import SCALE"), "a/b.py"), class_name="Model")
    assert caught.value.code == "ImportFailed" and caught.value.where["line"] == 3
