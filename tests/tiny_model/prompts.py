"""The prompts of the classes that the tiny model knows, as the product writes them: sliced by a real worker."""

from __future__ import annotations

import asyncio
import json
import sys

from kernel_lsp.generators import prompt
from kernel_lsp.jobs.client import Worker
from tests.tiny_model.cases import CASES, HERE, ROOT

TEMPLATE = HERE / "kernelllm.py.txt"


def prompts() -> dict[str, list[str]]:
    """Class name → its prompt with the model's template, and the one without. Takes as long as a worker takes to import torch and export the classes."""
    return asyncio.run(_prompts())


async def _prompts() -> dict[str, list[str]]:
    template = prompt.read_template(TEMPLATE.read_text("utf-8"))
    assert template is not None
    worker = Worker([sys.executable], ROOT)
    try:
        found = {}
        for case in CASES.values():
            params = {"path": str(case.path), "class_name": case.class_name, "inputs": None, "device": "interpreter"}
            sliced = await worker.request("slice", {**params, "seconds": 100}, seconds=120, stage="slicing")
            source = sliced["subject"]["source"]
            found[case.class_name] = [prompt.completion(source, template), prompt.completion(source, None)]
        return found
    finally:
        await worker.close()


if __name__ == "__main__":
    print(json.dumps(prompts()))
