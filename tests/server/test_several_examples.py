"""A verdict with several examples, as the editor shows it."""

from __future__ import annotations

from pathlib import Path

from tests.server.lsp_client import VERDICT, Client, write_kernel

EXAMPLES = [
    {"inputs": "x: float32[8]", "status": "ok", "error": 1e-7},
    {"inputs": "x: bfloat16[8]", "status": "eager"},
]


async def test_the_report_has_a_line_for_each_of_several_examples_and_the_hover_counts_them(
    client: Client, module: Path
) -> None:
    write_kernel(module, {**VERDICT, "examples": EXAMPLES})
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    hover = await client.hover(uri, 4, 8)
    assert "2 examples: 1 ok, 1 eager." in hover
    await client.execute("kernelLsp.showReport", {"uri": uri, "className": "Double", "version": 1})
    shown = await client.until(lambda: client.shown_documents)
    page = Path(shown[0].uri.removeprefix("file://")).read_text("utf-8")
    assert "<li>example 1 (x: float32[8]): ok, error 1.0e-07</li>" in page
