"""Above a class without a kernel stands what one is estimated to gain, and the hover says why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.recording import files
from tests.recording.made import run_of, shape, tensor

PLAIN = "Generate Triton kernel"
CHAIN = """\
import torch
from torch import nn


class Chain(nn.Module):
    def forward(self, x):
        return torch.sigmoid(torch.relu(x * 2.0) + 1.0)


class Other(nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.randn(1 << 16, 1 << 16)]
"""
LAYERS = """\
import torch
from torch import nn


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(256, 256)

    def forward(self, x):
        return self.lstm(x)[0]


def get_inputs():
    return [torch.randn(12, 8, 256)]
"""

pytestmark = pytest.mark.timeout(900)


def resting(**more: Any) -> dict[str, Any]:
    return {"settings": {"device": "interpreter", "validateWhenIdle": 0.3, **more}}


async def until_titles(client: Any, uri: str, titles: list[str], seconds: float = 400) -> None:
    async def shown() -> bool:
        return await client.lenses(uri) == titles

    await client.until(shown, seconds)


async def test_at_rest_an_estimate_stands_above_the_class_and_goes_with_an_edit(client: Any, module: Path) -> None:
    """The input is 16 GB, which is never allocated."""
    module.write_text(CHAIN)
    await client.start(module.parent, options=resting())
    uri = client.open(module)
    assert await client.lenses(uri) == [PLAIN, PLAIN]
    estimated = [f"{PLAIN} · est. 4.0×", PLAIN]
    await until_titles(client, uri, estimated)
    hover = await client.hover(uri, 4, 8)
    assert "4 launches" in hover and "4.0× the least traffic" in hover and "H100" in hover and "not measured" in hover
    assert "stimated" not in await client.hover(uri, 9, 8), "nothing is promised of a class that is one operator"

    # Another text of the class, or of its example inputs, has no estimate, whatever is on the disk.
    client.change(uri, 2, CHAIN.replace("x * 2.0)", "x * 3.0)"))
    assert await client.lenses(uri) == [PLAIN, PLAIN] and await client.hover(uri, 4, 8) == ""
    client.change(uri, 3, CHAIN.replace("1 << 16)", "64)"))
    assert await client.lenses(uri) == [PLAIN, PLAIN]
    client.change(uri, 4, CHAIN.replace("    def forward(self, x):\n        return x * 2.0", "    pass"))
    assert (await client.lenses(uri))[0] == estimated[0], "what another class has become is no matter"
    client.change(uri, 5, CHAIN)
    assert await client.lenses(uri) == estimated

    # Saved as another class it is estimated again.
    text = CHAIN.replace("torch.relu(x * 2.0) + 1.0", "x * 2.0")
    client.change(uri, 6, text)
    module.write_text(text)
    client.save(uri)
    await until_titles(client, uri, [f"{PLAIN} · est. 2.0×", PLAIN])


@pytest.mark.slow
async def test_another_recording_has_another_estimate(client: Any, module: Path, store: Path) -> None:
    """Of a program that is recorded while the editor is idle. In two dimensions forward does more."""
    more = "y = torch.relu(x * 2.0)\n        return torch.sigmoid(y + 1.0) if x.dim() == 2 else y"
    text = CHAIN.replace("return torch.sigmoid(torch.relu(x * 2.0) + 1.0)", more)
    module.write_text(text.replace("get_inputs", "other_inputs"))

    def record(sizes: str, calls: int) -> None:
        run = run_of(module.resolve(), [shape(tensor(f"float32[{sizes}]"), calls=calls)], "Chain")
        files.keep(run, store.parent / "recordings")

    async def launches(count: int) -> bool:
        return f"Eager: {count} launches" in await client.hover(uri, 4, 8)

    await client.start(module.parent, options=resting())
    uri = client.open(module)
    assert await client.lenses(uri) == [PLAIN, PLAIN]
    record("8, 65536", calls=10)
    await client.until(lambda: launches(4), 240)
    record("4, 8, 65536", calls=1000)
    await client.until(lambda: launches(2), 60)


async def test_in_a_folder_that_is_not_trusted_nothing_is_imported(client: Any, module: Path) -> None:
    flag = module.parent / "imported"
    module.write_text(f"open({str(flag)!r}, 'w').close()\n" + CHAIN)
    await client.start(module.parent, options={**resting(), "trusted": False})
    uri = client.open(module)
    assert await client.lenses(uri) == [PLAIN, PLAIN]
    await asyncio.sleep(3)
    assert not flag.exists() and (await client.debug())["workerPids"] == []
    assert await client.lenses(uri) == [PLAIN, PLAIN]

    # The same folder, trusted: then it is.
    await client.end()
    other = type(client)()
    try:
        await other.start(module.parent, options=resting())
        other.open(module)
        await other.until(flag.exists, 240)
    finally:
        await other.end()


@pytest.mark.slow
async def test_a_generation_does_not_wait_for_an_estimate(client: Any, module: Path) -> None:
    """The module's import takes as long as a file lies beside it."""
    flag, here = module.parent / "slow", module.parent / "here"
    waits = f"import os, time\nif os.path.exists({str(flag)!r}):\n    open({str(here)!r}, 'w').close()\n    time.sleep(600)\n"
    module.write_text(waits + module.read_text())
    flag.touch()
    await client.start(module.parent, options=resting(generators=["synthesizer"], estimateAbove=0.01))
    uri = client.open(module)
    await client.until(here.exists, 240)
    flag.unlink()
    await client.execute("kernelLsp.generate", {"uri": uri, "className": "Double", "version": 1})

    async def done() -> bool:
        return (await client.lenses(uri))[0].startswith("✓")

    await client.until(done, 240)


@pytest.mark.parametrize("above", [pytest.param(0, marks=pytest.mark.slow), 100])
async def test_what_promises_less_than_the_setting_is_not_shown(client: Any, module: Path, above: float) -> None:
    flag = module.parent / "imported"
    module.write_text(f"open({str(flag)!r}, 'w').close()\n" + CHAIN)
    await client.start(module.parent, options=resting(estimateAbove=above))
    uri = client.open(module)
    if above:
        await client.until(flag.exists, 240)
    await asyncio.sleep(3)
    assert flag.exists() == bool(above), "0 turns estimates off"
    assert await client.lenses(uri) == [PLAIN, PLAIN]


@pytest.mark.slow
async def test_hints_of_what_torch_does_slowly_are_off_until_wanted(client: Any, module: Path) -> None:
    module.write_text(LAYERS)
    await client.start(module.parent, options=resting())
    uri = client.open(module)

    async def estimated() -> bool:
        return "est." in (await client.lenses(uri))[0]

    await client.until(estimated, 240)
    assert "slow-in-torch" not in client.codes(uri)
    client.set_configuration({"torchHints": True}, section="kernelLsp")
    client.workspace_did_change_configuration(_changed())
    await client.until(lambda: "slow-in-torch" in client.codes(uri), 30)
    (hint,) = [d for d in client.diagnostics[uri] if d.code == "slow-in-torch"]
    assert hint.severity == 4 and "hidden size 256" in hint.message and "RNN.cpp" in hint.message


def _changed() -> Any:
    from lsprotocol import types

    return types.DidChangeConfigurationParams(settings=None)
