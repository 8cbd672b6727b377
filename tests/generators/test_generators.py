"""The generators' protocol, and the synthesizer against a real worker."""

import sys
from pathlib import Path

import pytest

from kernel_lsp import errors, generators
from kernel_lsp.jobs.client import Worker
from kernel_lsp.settings import load
from kernel_lsp.store.graphs import Graph
from tests.store.made import found, keep

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(errors.GeneratorUnknown, match="synthesizer"):
        generators.find("oracle")


def test_every_name_leads_to_a_generator():
    for name in generators.names():
        assert callable(generators.find(name))


@pytest.mark.slow
async def test_the_synthesizer_yields_candidates_and_leaves_the_specimen():
    worker = Worker([sys.executable])
    told = []

    async def ask(method: str, stage: str):
        params = {"path": str(SAMPLES / "softmax.py"), "class_name": "TemperatureSoftmax", "inputs": None}
        return await worker.request(method, params | {"device": "auto"}, seconds=90, stage=stage)

    request = generators.Request(SAMPLES / "softmax.py", "TemperatureSoftmax", None, "auto", 1, ask, told.append)
    try:
        (candidates,) = [schedules async for schedules in generators.find("synthesizer")(request)]
    finally:
        await worker.close()
    assert len(candidates) == 1  # samples=1
    assert "class TemperatureSoftmaxTriton(TemperatureSoftmax)" in candidates[0].source
    assert candidates[0].generator == "synthesizer"
    assert request.specimen.inputs[0].shape == [8192, 4096]
    assert told[0] == "Writing a kernel by rule"


def test_by_default_those_are_asked_that_can_run_here(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a key alone is no leave to send code anywhere")
    path = tmp_path / "x.py"
    assert generators.chosen(load(path)[0]) == ["synthesizer"]
    served = {"openai": {"base_url": "http://127.0.0.1:8000/v1"}}
    assert generators.chosen(load(path, cli=served)[0]) == ["synthesizer", "openai"]
    assert generators.chosen(load(path, cli={"openai": {"model": "gpt"}})[0]) == ["synthesizer", "openai"]
    (tmp_path / "pyproject.toml").write_text('[tool.kernel-lsp.llama-cpp]\nmodel = "models/tiny.gguf"\n')
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny.gguf").write_bytes(b"GGUF")  # relative to pyproject.toml
    assert generators.chosen(load(path)[0]) == ["synthesizer", "llama-cpp"]
    assert generators.chosen(load(path, cli={"generators": ["openai", "openai"]})[0]) == ["openai"]


def test_what_is_recalled_is_left_out_where_generators_are_measured(tmp_path, monkeypatch):
    store = tmp_path / "store.sqlite"
    monkeypatch.setenv("KERNEL_LSP_STORE", str(store))
    settings = load(tmp_path / "x.py")[0]
    assert generators.missing("recall", settings) == "nothing that was validated as correct is in the store yet"
    assert generators.chosen(settings) == ["synthesizer"]
    keep(store, found(), tmp_path / "norm.py", tmp_path, graph=Graph("sha256:graph"))
    assert generators.missing("recall", settings) == ""
    assert generators.chosen(settings) == ["recall", "synthesizer"]
    assert generators.that_write(settings) == ["synthesizer"]
    named = load(tmp_path / "x.py", cli={"generators": ["recall", "synthesizer"]})[0]
    assert generators.that_write(named) == ["recall", "synthesizer"]
    store.write_text("damaged" * 100)
    assert "could not be read" in generators.missing("recall", settings)
    monkeypatch.setenv("KERNEL_LSP_STORE", "")
    assert generators.missing("recall", settings).startswith("nothing is kept")


async def test_code_goes_only_to_a_server_that_was_named():
    async def ask(method: str, stage: str):
        raise AssertionError("nothing was to be asked")

    request = generators.Request(SAMPLES / "softmax.py", "TemperatureSoftmax", None, "auto", 1, ask, print)
    with pytest.raises(errors.ModelServerNotNamed):
        async for _ in generators.find("openai")(request):
            pass
