"""Saves that come while a kernel is being validated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the worker needs torch")
pytest.importorskip("triton", reason="the worker needs triton")


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_an_edit_is_undone_while_it_is_validated(client: Any, module: Path) -> None:
    """The validation under way is of the text before, and would leave the kernel stale for ever."""
    await client.start(module.parent)
    uri = client.open(module)
    source = module.read_text()
    argument = {"uri": uri, "className": "Double", "version": 1}
    await client.execute("kernelLsp.generate", argument)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"], 120)

    other = source.replace("x * 2", "x * 3")
    assert other != source
    client.change(uri, 2, other)
    module.write_text(other)
    client.save(uri)
    await client.until(lambda: begins(client, uri, "…"))

    client.change(uri, 3, source)
    module.write_text(source)
    client.save(uri)
    await client.until(lambda: begins(client, uri, "✓"), 60)
    assert client.codes(uri) == ["kernel-valid"]


async def begins(client: Any, uri: str, mark: str) -> bool:
    return (await client.lenses(uri))[0].startswith(mark)
