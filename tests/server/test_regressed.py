"""A kernel that is slower than the one before it: said on every surface, shown as a difference, and taken back."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from kernel_lsp import analysis, kernel_file, schema
from kernel_lsp.store import database, validations
from kernel_lsp.store.validations import About, Validation
from kernel_lsp.worker import environment
from tests.server.lsp_client import BODY, MEASUREMENT, VERDICT, Client, write_kernel

FASTER = '''"""Double."""
import torch
import triton
import triton.language as tl

from double import Double


@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)


class DoubleTriton(Double):
    def forward(self, x):
        if type(x) is not torch.Tensor or x.dtype != torch.float32 or not x.numel() or x.requires_grad:
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
'''
COMPARISON: dict[str, Any] = {
    "now": {"median": 10.8, "low": 10.7, "high": 10.9, "runs": 200},
    "before": {"median": 10.0, "low": 9.9, "high": 10.1, "runs": 200},
    "ratio": {"value": 1.08, "low": 1.07, "high": 1.09, "rounds": 200},
    "body": kernel_file.body_hash(FASTER),
    "reached_at": "2026-01-09T00:00:00+00:00",
    "changed": "kernel, torch 2.11.0 → 2.13.0",
}
SHOW = "Show what changed in the Triton kernel for Double"
RESTORE = "Restore the faster Triton kernel for Double"


def regressed(module: Path, low: float = 1.07) -> Path:
    """A kernel file as a validation left it that found it slower than ``FASTER``, which the store keeps."""
    measurement = copy.deepcopy(MEASUREMENT) | {"comparison": copy.deepcopy(COMPARISON)}
    measurement["comparison"]["ratio"]["low"] = low  # type: ignore[index]
    path = write_kernel(module, measurement=measurement)
    fingerprint = analysis.fingerprint(module.read_text(), module, "Double")
    device = (environment.cuda_devices() or [environment.interpreter_device()])[0]
    key = validations.key_for(device, fingerprint, kernel_file.body_hash(FASTER), "trust")
    assert key is not None
    found = Validation(schema.from_json(schema.Verdict, VERDICT), None, None, "2026-01-09T00:00:00+00:00")
    found.measurement = schema.from_json(schema.Measurement, MEASUREMENT)
    validations.keep(key, found, database.default_path(), About(source=FASTER, generator="synthesizer"))
    return path


def argument(uri: str) -> dict[str, Any]:
    return {"uri": uri, "className": "Double", "version": 1}


async def opened(client: Client, module: Path, **options: Any) -> str:
    await client.start(module.parent, options={"settings": {"device": "interpreter"}, **options})
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-regressed"])
    return uri


async def test_it_is_said_with_both_times_and_what_changed(client: Client, module: Path) -> None:
    regressed(module)
    uri = await opened(client, module)
    (diagnostic,) = client.diagnostics[uri]
    assert diagnostic.severity == types.DiagnosticSeverity.Warning
    said = (
        "Slower than the kernel of 2026-01-09: 10.8 µs instead of 10.0 µs. Timed in turn, it takes 1.08× as long "
        "(99 % sure: 1.07× to 1.09×, 200 rounds). Changed: kernel, torch 2.11.0 → 2.13.0."
    )
    assert diagnostic.message == f"DoubleTriton is correct, but lost speed on Test GPU. {said}"
    assert (await client.lenses(uri))[0] == "▼ 8 % slower than before · 2.31× eager · 1.24× compile"
    hover = await client.hover(uri, 4, 8)
    assert hover.startswith("▼ **DoubleTriton** · Test GPU · ") and said not in hover and "slower" not in hover
    before = len(client.shown_documents)
    await client.execute("kernelLsp.showReport", argument(uri))
    shown = await client.until(lambda: client.shown_documents[before:])
    assert "Slower than before" in Path(shown[0].uri.removeprefix("file://")).read_text("utf-8")


async def test_an_interval_that_reaches_below_the_threshold_is_no_regression(client: Client, module: Path) -> None:
    regressed(module, low=1.04)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert not {SHOW, RESTORE} & set(await client.actions(uri, 4))
    for command in ("showChange", "restore"):
        with pytest.raises(Exception, match="The store has no faster kernel of Double"):
            await client.execute(f"kernelLsp.{command}", argument(uri))
    client.set_configuration({"regressionThreshold": 3}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
    await client.until(lambda: client.codes(uri) == ["kernel-regressed"])


@pytest.mark.parametrize("editor", ["visual-studio-code", "neovim", "emacs"])
async def test_what_changed_is_shown_as_a_difference(client: Client, module: Path, editor: str) -> None:
    regressed(module)
    await client.start(module.parent, editor)
    uri = client.open(module)
    found = await client.until(lambda: _with(client, uri, SHOW))
    command = found.command if isinstance(found, types.CodeAction) else found
    await client.execute(command.command, *command.arguments)
    shown, toasts = client.shown_documents, client.messages
    await client.until(lambda: shown or toasts)
    if shown:
        (shown,) = shown
        assert shown.external is False
        page = Path(shown.uri.removeprefix("file://"))
    else:  # it cannot be told to show a file
        (toast,) = toasts
        page = Path(toast.message.removeprefix("What changed: "))
    text = page.read_text("utf-8")
    assert page.name == "Double.diff" and text.startswith("Slower than the kernel of 2026-01-09: 10.8 µs")
    assert "\n--- double_triton.py\tfaster, of 2026-01-09, 10.0 µs\n+++ double_triton.py\tnow, 10.8 µs\n@@" in text
    assert "\n-    double_kernel[" not in text and "\n-        double_kernel[" in text and "\n+    pass" in text
    await client.end()
    assert not page.exists()


async def _with(client: Client, uri: str, title: str) -> Any:
    return (await client.actions(uri, 4)).get(title)


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_the_faster_kernel_is_validated_and_restored(client: Client, module: Path) -> None:
    kernel = regressed(module)
    uri = await opened(client, module)
    await client.execute("kernelLsp.restore", argument(uri))
    await client.until(lambda: kernel_file.read(kernel).body == FASTER, 90)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    parsed = kernel_file.read(kernel)
    assert not parsed.edited and parsed.generator == "synthesizer" and "envelope" in parsed.header
    assert parsed.claim is not None and parsed.claim.verdict.mode in ("interpreter", "gpu")
    assert not {SHOW, RESTORE} & set(await client.actions(uri, 4))


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_what_it_would_replace_is_asked_about(client: Client, module: Path) -> None:
    """By a client that shows a new kernel before it is written."""
    kernel = regressed(module)
    uri = await opened(client, module, review=True)
    proposals: list[Any] = []

    @client.feature("kernelLsp/proposal")
    def propose(proposal: Any) -> None:
        proposals.append(proposal)

    await client.execute("kernelLsp.restore", argument(uri))
    (proposal,) = await client.until(lambda: proposals, 90)
    assert kernel_file.parse(proposal.text).body == FASTER and kernel_file.read(kernel).body == BODY


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("choice", ["Overwrite", "Keep my edits"])
async def test_edits_stay_unless_the_user_gives_them_up(client: Client, module: Path, choice: str) -> None:
    kernel = regressed(module)
    client.choice = choice
    uri = await opened(client, module)
    # Edited between the look at the actions and the choice of one: the header's hash is of another body.
    changed = kernel.read_text().replace('# body = "', '# body = "x').replace('# code = "', '# code = "x')
    kernel.write_text(changed)
    edited = kernel.read_text()
    await client.execute("kernelLsp.restore", argument(uri))
    await client.until(lambda: types.WINDOW_SHOW_MESSAGE_REQUEST in client.requests, 60)
    if choice == "Overwrite":
        await client.until(lambda: kernel_file.read(kernel).body == FASTER, 90)
    else:
        await client.until(lambda: _idle(client), 60)
        assert kernel.read_text() == edited


async def _idle(client: Client) -> bool:
    return not (await client.debug())["jobs"]


async def test_times_beside_other_work_are_marked(client: Client, module: Path) -> None:
    write_kernel(module, measurement=MEASUREMENT | {"beside": "87 % busy by pid 4711 (python)"})
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert "⚠ Timed beside other work: 87 % busy by pid 4711 (python)." in await client.hover(uri, 4, 8)
    await client.execute("kernelLsp.showReport", argument(uri))
    (shown,) = await client.until(lambda: client.shown_documents)
    page = Path(shown.uri.removeprefix("file://")).read_text("utf-8")
    assert "The GPU was 87 % busy by pid 4711 (python) meanwhile." in page
