"""What an editor shows of recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel_lsp.recording import files
from tests.recording.made import run_of, shape, tensor
from tests.server.lsp_client import write_kernel


def keep(module: Path, store: Path) -> None:
    shapes = [shape(tensor("float32[8, 32]"), calls=12000), shape(tensor("float32[4, 32]"), calls=10)]
    files.keep(run_of(module.resolve(), shapes), store.parent / "recordings")


async def test_a_class_without_a_kernel_says_how_much_of_the_run_it_is(client: Any, module: Path, store: Path) -> None:
    module.write_text(module.read_text().replace("get_inputs", "other_inputs"))
    keep(module, store)
    await client.start(module.parent)
    uri = client.open(module)
    await client.lenses(uri)
    assert await client.hover(uri, 4, 8) == "2 shapes recorded from train.py. 12 % of train.py's forward."
    assert await client.lenses(uri) == ["Generate Triton kernel · 12 % of train.py's forward"]
    # Its example inputs are the recorded ones: nothing is missing.
    await client.until(lambda: client.codes(uri) == [])


async def test_a_program_is_recorded_while_the_editor_is_open(client: Any, module: Path, store: Path) -> None:
    write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert "recorded from" not in await client.hover(uri, 4, 8)
    keep(module, store)

    async def shown() -> bool:
        return "2 shapes recorded from train.py" in await client.hover(uri, 4, 8)

    await client.until(shown)
    assert await client.lenses(uri) == ["✓ 2.31× eager · 1.24× compile"]
