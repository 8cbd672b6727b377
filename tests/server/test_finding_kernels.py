"""The kernel file of a class among those beside its source, under each name that it may have."""

from kernel_lsp import kernel_file
from kernel_lsp.server.model.kernels import Kernels


def text_for(source: str) -> str:
    return kernel_file.assemble({"source": source, "class": source.partition("::")[2]}, "X = 1\n")


def test_finds_the_kernel_of_each_class_by_the_header(tmp_path):
    sources = [tmp_path / name for name in ("19_ReLU.py", "my-model.py", "my_model.py")]
    folder = tmp_path / "kernels"
    folder.mkdir()
    for source in sources:
        source.write_text("")
    former = folder / "model_triton.py"
    former.write_text(text_for("my-model.py::Model"))
    new = kernel_file.find_kernel(sources[0], "Model")
    new.write_text(text_for("19_ReLU.py::Model"))
    found = [Kernels().find(source, "Model", "kernels") for source in sources]
    assert [one and one[0] for one in found] == [new, former, None]
    assert (new.name, former.name) == ("model_19_relu_triton.py", "model_triton.py")
    assert Kernels().find(sources[0], "Other", "kernels") is None


def test_finds_kernels_under_the_longer_names_of_before(tmp_path):
    (tmp_path / "kernels").mkdir()
    for name, kernel in (("19_ReLU.py", "model__19_relu__dc1de1_triton.py"), ("layers.py", "model__layers_triton.py")):
        (tmp_path / name).write_text("")
        (tmp_path / "kernels" / kernel).write_text(text_for(f"{name}::Model"))
        path, parsed = Kernels().find(tmp_path / name, "Model", "kernels")
        assert (path.name, parsed.source) == (kernel, f"{name}::Model")
