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


async def test_a_kernel_that_was_timed_at_recorded_shapes_says_so(client: Any, module: Path, store: Path) -> None:
    def timing(median: float) -> dict[str, Any]:
        return {"median": median, "low": median, "high": median, "runs": 50}

    def at(rows: int, calls: int | None, eager: float, kernel: float, **further: Any) -> dict[str, Any]:
        inputs = [{"name": "x", "shape": [rows, 32], "dtype": "float32"}]
        return {"inputs": inputs, "eager": timing(eager), "kernel": timing(kernel), "calls": calls, **further}

    shapes = [at(8, None, 231.0, 100.0, compiled=timing(124.0)), at(4, 12000, 50.0, 20.0), at(2, 6000, 11.0, 10.0)]
    mix = {"source": "train.py", "share": 0.97, "left_out": ["float32[9, 32]: not enough memory"]}
    write_kernel(module, measurement={"shapes": shapes, "recorded": mix})
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert await client.lenses(uri) == ["✓ 2.22× eager over 2 shapes · example: 1.24× compile"]
    words = "2.22× eager over 2 recorded shapes of train.py, weighted by calls"
    assert f"{words}, 1.24× torch.compile at the example" in client.diagnostics[uri][0].message
    hover = await client.hover(uri, 4, 8)
    line = "**2.22×** eager over 2 recorded shapes of train.py, weighted by calls (97 % of its time there)"
    assert f"\n\n{line}; **1.24×** torch.compile at the example.\n\n" in hover and "|" not in hover
