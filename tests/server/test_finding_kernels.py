"""The kernel file of a class among those beside its source, also one that has its name from the class alone."""

from kernel_lsp import kernel_file
from kernel_lsp.server.kernels import Kernels


def text_for(source: str) -> str:
    return kernel_file.assemble({"source": source, "class": source.partition("::")[2]}, "X = 1\n")


def test_finds_the_kernel_of_each_class_under_its_name_and_its_former_one(tmp_path):
    sources = [tmp_path / name for name in ("19_ReLU.py", "my-model.py", "my_model.py")]
    folder = tmp_path / "kernels"
    folder.mkdir()
    for source in sources:
        source.write_text("")
    former = folder / "model_triton.py"
    former.write_text(text_for("my-model.py::Model"))
    new = kernel_file.kernel_path(sources[0], "Model")
    new.write_text(text_for("19_ReLU.py::Model"))
    found = [Kernels().find(source, "Model", "kernels") for source in sources]
    assert [one and one[0] for one in found] == [new, former, None]
    assert Kernels().find(sources[0], "Other", "kernels") is None
