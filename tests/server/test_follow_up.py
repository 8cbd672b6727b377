"""The checks that a validation skipped are made when the editor is idle, and no longer than it is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp import analysis, schema
from kernel_lsp.jobs import power
from kernel_lsp.store.validations import Validation
from tests.server.lsp_client import VERDICT, validate_here, write_kernel
from tests.server.test_regressed import FASTER

#: A forward that sleeps twice while there is a file beside it: so long that checks are put off, and then left out.
MODULE = """\
import os
import time
import torch
from torch import nn

slept = set()


def sleep(why, seconds):
    if why not in slept and os.path.exists({flag!r}):
        slept.add(why)
        time.sleep(seconds)


class Double(nn.Module):
    def forward(self, x):
        if type(x) is torch.Tensor and torch.is_grad_enabled():
            sleep("gradients", 3.5)
        if type(x) is torch.Tensor and x.numel() and 1e9 < x.abs().max() < float("inf"):
            sleep("huge values", 10.0)
        return x * 2.0


def get_inputs():
    return [torch.randn(8, 32)]
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_what_was_left_out_is_made_up_for_at_rest(client: Any, module: Path, store: Path) -> None:
    pytest.importorskip("torch", reason="the worker needs torch")
    pytest.importorskip("triton", reason="the worker needs triton")
    flag = module.parent / "slow"
    flag.touch()
    module.write_text(MODULE.format(flag=str(flag)))
    settings = '[tool.kernel-lsp]\ngenerators = ["synthesizer"]\ndevice = "interpreter"\nvalidate-when-idle = 0.5\n'
    (module.parent / "pyproject.toml").write_text(settings)
    await client.start(module.parent)
    uri = client.open(module)
    await client.execute("kernelLsp.generate", {"uri": uri, "className": "Double", "version": 1})
    await client.until(lambda: shows(client, uri, "skipped"), 90)
    first = (await client.lenses(uri))[0]

    # An edit ends what has begun, at once; nothing else is shown meanwhile.
    (job,) = await client.until(lambda: running(client), 10)
    assert job.startswith("validate-") and await client.lenses(uri) == [first]
    client.change(uri, 2, module.read_text() + "\n# a remark\n")
    began = asyncio.get_running_loop().time()
    await client.until(lambda: none_running(client), 20)
    assert asyncio.get_running_loop().time() - began < 5
    await asyncio.sleep(1.5)
    assert await none_running(client), "the editor holds what the disk does not: nothing is validated"
    assert await client.lenses(uri) == [first]

    # Undone and at rest: the checks are made, and their verdict replaces the one before.
    flag.unlink()
    client.change(uri, 3, module.read_text())
    await client.until(lambda: lacks(client, uri, "skipped"), 120)
    assert client.codes(uri) == ["kernel-valid"] and "skipped" not in client.diagnostics[uri][0].message
    hover = await client.hover(uri, 14, 8)
    assert "checks passed" in hover and "skipped" not in hover
    assert await none_running(client)
    first_verdict, verdict = stored(store)
    assert first_verdict["skipped"]
    assert verdict["status"] == "ok" and not verdict["skipped"] and len(verdict["checks"]) > 30

    # Not a second time, and not for a verdict that left nothing out.
    await asyncio.sleep(1.5)
    assert await none_running(client)


def from_before(module: Path) -> None:
    """A right kernel, validated with another torch and never with the one of now."""
    write_kernel(module, body=FASTER, validated=False)
    fingerprint = analysis.fingerprint(module.read_text(), module, "Double")
    found = Validation(schema.from_json(schema.Verdict, VERDICT), None, None, "2026-01-01T00:00:00+00:00")
    validate_here(fingerprint, FASTER, found, torch="another")


def resting(revalidate: str, **more: Any) -> dict[str, Any]:
    return {"settings": {"device": "interpreter", "revalidate": revalidate, "validateWhenIdle": 0.5, **more}}


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_a_verdict_from_before_is_renewed_at_rest(client: Any, module: Path) -> None:
    pytest.importorskip("triton", reason="the worker needs triton")
    from_before(module)
    await client.start(module.parent, options=resting("idle"))
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    assert "was validated with torch another before; now" in client.diagnostics[uri][0].message

    # An edit ends it, as the editor then holds what the disk does not; undone and at rest, it begins again.
    (first,) = await client.until(lambda: running(client), 60)
    client.change(uri, 2, module.read_text() + "\n# a remark\n")
    await client.until(lambda: none_running(client), 20)
    await asyncio.sleep(1.5)
    assert await none_running(client)
    client.change(uri, 3, module.read_text())
    (second,) = await client.until(lambda: running(client), 20)
    assert second != first
    await client.until(lambda: client.codes(uri) == ["kernel-valid"], 90)
    await client.until(lambda: none_running(client), 60)  # on a busy machine checks are left out, and made up for
    await asyncio.sleep(1.5)
    assert await none_running(client)  # once


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_what_the_user_cancels_is_not_begun_again(client: Any, module: Path) -> None:
    pytest.importorskip("triton", reason="the worker needs triton")
    from_before(module)
    await client.start(module.parent, options=resting("idle"))
    uri = client.open(module)
    (job,) = await client.until(lambda: running(client), 60)
    assert await client.execute("kernelLsp.cancel", {"jobId": job}) == job
    await client.until(lambda: none_running(client), 20)
    await asyncio.sleep(2.0)
    assert await none_running(client) and client.codes(uri) == ["kernel-not-validated"]


@pytest.mark.parametrize(
    "reason", ["save", "untrusted", *(pytest.param(reason, marks=pytest.mark.slow) for reason in ("never", "busy"))]
)
async def test_a_verdict_from_before_stays(client: Any, module: Path, gpu_driver: Path, reason: str) -> None:
    """Where the setting does not say so, others keep the GPU busy, or nothing of the folder's may run."""
    from_before(module)
    gpu_driver.write_text(f"{os.getpid()} 87\n" if reason == "busy" else "")
    options = resting(reason if reason in ("save", "never") else "idle")
    if reason == "busy":
        options["settings"]["device"] = "auto"
    await client.start(module.parent, options=options | {"trusted": reason != "untrusted"})
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    await asyncio.sleep(2.0)
    assert await none_running(client) and client.codes(uri) == ["kernel-not-validated"]


def stored(path: Path) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [json.loads(row[0]) for row in connection.execute("select verdict from verdicts order by rowid")]


async def shows(client: Any, uri: str, part: str) -> bool:
    return part in (await client.lenses(uri))[0]


async def lacks(client: Any, uri: str, part: str) -> bool:
    lens = (await client.lenses(uri))[0]
    return lens.startswith("✓") and part not in lens


async def running(client: Any) -> list[str]:
    return (await client.debug())["jobs"]


async def none_running(client: Any) -> bool:
    return not await running(client)


def supply(folder: Path, name: str, **said: str) -> None:
    (folder / name).mkdir()
    for what, text in said.items():
        (folder / name / what).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ({}, False),
        ({"BAT0": {"type": "Battery", "status": "Discharging"}}, True),
        ({"BAT0": {"type": "Battery", "status": "Charging"}}, False),
        ({"BAT0": {"type": "Battery", "status": "Discharging"}, "AC": {"type": "Mains", "online": "1"}}, False),
        ({"BAT0": {"type": "Battery", "status": "Discharging"}, "AC": {"type": "Mains", "online": "0"}}, True),
        ({"mouse": {"type": "Battery", "status": "Discharging", "scope": "Device"}}, False),
    ],
)
def test_whether_a_battery_is_discharging(tmp_path: Path, supplies: dict[str, dict[str, str]], expected: bool) -> None:
    for name, said in supplies.items():
        supply(tmp_path, name, **said)
    assert power.discharging(tmp_path) is expected
    assert power.discharging(tmp_path / "none") is False


def test_this_machine_says_whether_it_runs_on_a_battery() -> None:
    batteries = [*power.SUPPLIES.glob("BAT*")] if os.path.isdir(power.SUPPLIES) else []
    assert power.on_battery() is False or batteries
