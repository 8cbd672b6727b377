"""Which validated kernels a prompt gets: the nearest, few, short, and none of another project for another machine."""

import pytest

from kernel_lsp import class_schema, generators
from kernel_lsp.class_schema import Subject
from kernel_lsp.generators import prompt, verified
from kernel_lsp.settings import Settings
from kernel_lsp.store.graphs import Graph
from tests.generators.test_adapting import KERNEL
from tests.store.made import DEVICE, found, keep

OPS = {"aten.mul": 2, "aten.rsqrt": 1}
GRAPH = Graph("sha256:norm", ["x"], [], ["weight"], OPS)


@pytest.fixture
def request_for(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))

    async def ask(method: str, stage: str):
        raise AssertionError("nothing was to be asked")

    def request_for(path):
        specimen = class_schema.Specimen("Norm", "norm", "", "", ops=OPS, graph="sha256:norm")
        request = generators.Request(path, "Norm", None, "auto", 1, ask, print, Settings(), gpu=DEVICE)
        request.specimen = specimen
        return request

    return request_for


async def test_what_was_measured_and_the_kernel_without_its_envelope(request_for, tmp_path):
    store, root = tmp_path / "store.sqlite", tmp_path / "project"
    keep(store, found(1), root / "norm.py", root, KERNEL, graph=GRAPH)
    (text,) = await verified.examples(request_for(root / "other.py"), leaves=True)
    said = "Of a module with 2 × aten.mul, aten.rsqrt; validated on Test GPU, 2.00× as fast as eager, 50.0 µs for "
    assert text.startswith(f"{said}float32[8, 32]:\n\n```python\nimport math\n")
    assert "norm_kernel[(1,)](x, weight)" in text and "class NormTriton(Norm)" in text
    assert "_in_envelope(self" not in text and "as one Triton kernel" not in text
    [message] = prompt.chat(Subject("class Model: ...", "m", "Norm"), examples=[text])
    assert f"validated as correct before:\n\n{text}\n\nAnswer with one Python block" in message["content"]


async def test_kernels_of_other_projects_stay_on_this_machine(request_for, tmp_path):
    store, root = tmp_path / "store.sqlite", tmp_path / "project"
    keep(store, found(1), root / "norm.py", root, KERNEL, graph=GRAPH)
    elsewhere = request_for(tmp_path / "another" / "norm.py")
    assert await verified.examples(elsewhere, leaves=True) == []
    assert len(await verified.examples(elsewhere, leaves=False)) == 1


async def test_they_are_few_and_short(request_for, tmp_path):
    store = tmp_path / "store.sqlite"
    for number in range(6):
        keep(store, found(number + 1), tmp_path / "n.py", tmp_path, KERNEL + f"\n\nN = {number}\n", graph=GRAPH)
    keep(store, found(9, kernel=1.0), tmp_path / "n.py", tmp_path, KERNEL + f"\n\nN = {'9' * 6000}\n", graph=GRAPH)
    keep(store, found(9, kernel=1.0), tmp_path / "n.py", tmp_path, "no Python\n", graph=GRAPH)
    texts = await verified.examples(request_for(tmp_path / "n.py"), leaves=False)
    assert len(texts) == 3 and sum(map(len, texts)) <= 6000


async def test_nothing_where_nothing_is_like_it_or_there_is_no_store(request_for, tmp_path, monkeypatch):
    request = request_for(tmp_path / "n.py")
    assert await verified.examples(request, leaves=False) == []
    (tmp_path / "store.sqlite").write_text("damaged" * 100)
    assert await verified.examples(request, leaves=False) == []
    request.specimen = None
    assert await verified.examples(request, leaves=False) == []
