"""The generators' protocol, and the synthesizer against a real worker."""

import sys
from pathlib import Path

import pytest

from kernel_lsp import errors, generators
from kernel_lsp.jobs.client import Worker

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(errors.GeneratorUnknown, match="synthesizer"):
        generators.find("oracle")


def test_every_name_leads_to_a_generator():
    for name in generators.names():
        assert callable(generators.find(name))


async def test_the_synthesizer_yields_candidates_and_leaves_the_specimen():
    worker = Worker([sys.executable])
    told = []

    async def ask(method: str, stage: str):
        params = {"path": str(SAMPLES / "softmax.py"), "class_name": "TemperatureSoftmax", "inputs": None}
        return await worker.request(method, params | {"device": "auto"}, seconds=90, stage=stage)

    request = generators.Request(SAMPLES / "softmax.py", "TemperatureSoftmax", None, "auto", 1, ask, told.append)
    try:
        candidates = [candidate async for candidate in generators.find("synthesizer")(request)]
    finally:
        await worker.close()
    assert len(candidates) == 1  # samples=1
    assert "class TemperatureSoftmaxTriton(TemperatureSoftmax)" in candidates[0].source
    assert candidates[0].generator == "synthesizer"
    assert request.specimen.inputs[0].shape == [8192, 4096]
    assert "TemperatureSoftmax" in told[0]
