"""What a file says and what this machine validated are told apart on every surface."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from kernel_lsp import analysis, kernel_file, schema
from kernel_lsp.store.validations import Validation
from tests.server.lsp_client import BODY, MEASUREMENT, VERDICT, Client, validate_here, write_kernel

FORGED = """\
# /// kernel-lsp
# source = "double.py::Double"
# class = "Double"
# fingerprint = "{fingerprint}"
# body = "{body}"
{findings}
# ///
"""
SHORT = """\
# verdict = {status = "ok", mode = "gpu", passed = 99}
# validated = {by = "0.1.0", at = "2026-01-01T00:00:00Z", on = "NVIDIA H100", torch = "2.11.0", triton = "3.6.0"}
# measured = {at = "2026-01-01T00:00:00Z", inputs = "float32[8, 32]", roofline = 0.99}
# microseconds = {eager = [90.0, 89.0, 91.0, 50], kernel = [10.0, 9.9, 10.1, 50]}"""
LONG = """\
# version = "0.1.0"
# [verdict]
# status = "ok"
# mode = "gpu"
# [device]
# name = "NVIDIA H100"
# kind = "cuda"
# [measurement]
# shapes = [{inputs = [], eager = {median = 90.0, low = 89.0, high = 91.0, runs = 50}, kernel = {median = 10.0, low = 9.9, high = 10.1, runs = 50}}]"""
WORDS = "says it was validated on NVIDIA H100 by kernel-lsp 0.1.0 (9.00× eager)"
LENS = "? not validated here · file says 9.00× eager"


def forge(module: Path, findings: str = SHORT, body: str = BODY) -> Path:
    """A kernel file written by hand, whose header says 9.00×, with hashes that fit."""
    path = kernel_file.find_kernel(module, "Double")
    path.parent.mkdir(exist_ok=True)
    fingerprint = analysis.fingerprint(module.read_text(), module, "Double")
    head = FORGED.format(fingerprint=fingerprint, body=kernel_file.body_hash(body), findings=findings)
    path.write_text(head + body)
    return path


async def inlay_hints(client: Client, uri: str) -> list[Any]:
    area = types.Range(types.Position(0, 0), types.Position(20, 0))
    params = types.InlayHintParams(types.TextDocumentIdentifier(uri), area)
    return [hint.label for hint in await client.text_document_inlay_hint_async(params) or []]


async def page_of(client: Client, uri: str) -> str:
    before = len(client.shown_documents)
    await client.execute("kernelLsp.showReport", {"uri": uri, "className": "Double", "version": 1})
    shown = await client.until(lambda: client.shown_documents[before:])
    return Path(shown[0].uri.removeprefix("file://")).read_text("utf-8")


@pytest.mark.parametrize("findings", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
async def test_a_header_made_by_hand_is_a_claim_everywhere(client: Client, module: Path, findings: str) -> None:
    kernel = forge(module, findings)
    client.set_configuration({"inlayHints": True}, section="kernelLsp")
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    (diagnostic,) = client.diagnostics[uri]
    assert diagnostic.severity == types.DiagnosticSeverity.Hint
    assert WORDS in diagnostic.message and "not validated here" in diagnostic.message
    assert await client.lenses(uri) == [LENS, "Validate"]
    assert await inlay_hints(client, uri) == [LENS]
    hover = await client.hover(uri, 4, 8)
    assert "**Not validated here.**" in hover and WORDS not in hover
    assert "correct" not in hover and "✓" not in hover and "| inputs |" not in hover
    actions = await client.actions(uri, 4, 8)
    assert "Validate Triton kernel for Double" in actions and "Use DoubleTriton in this file" not in actions
    page = await page_of(client, uri)
    assert f"Not validated on this machine. The file {WORDS}." in page
    assert "✓" not in page and "Speed over eager" not in page

    opened = client.open(kernel)
    await client.until(lambda: client.codes(opened) == ["kernel-not-validated"])
    assert WORDS in client.diagnostics[opened][0].message
    assert f"Not validated on this machine. The file {WORDS}." in await page_of(client, opened)


async def test_a_claim_of_a_wrong_kernel_is_no_error(client: Client, module: Path) -> None:
    forge(module, '# verdict = {status = "wrong", mode = "gpu", line = 2}\n# reason = "off by 3"')
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    assert (await client.lenses(uri))[0] == "? not validated here · file says wrong"


async def test_an_edit_of_the_body_is_not_validated_whatever_the_header_says(client: Client, module: Path) -> None:
    kernel = write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    edited = BODY.replace("pass", "mine = 1")
    text = kernel.read_text().replace(BODY, edited)
    changed = types.DidChangeWatchedFilesParams([types.FileEvent(kernel.as_uri(), types.FileChangeType.Changed)])
    kernel.write_text(text)
    client.workspace_did_change_watched_files(changed)
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    # The header's hash is mended by hand, too.
    kernel.write_text(text.replace(kernel_file.body_hash(BODY), kernel_file.body_hash(edited)))
    client.workspace_did_change_watched_files(changed)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    assert (await client.lenses(uri))[0] == "? not validated here · file says 2.31× eager"


@pytest.mark.slow
async def test_a_forged_file_on_top_of_a_validated_one_shows_what_was_measured(client: Client, module: Path) -> None:
    """The same class and body: the verdict is this machine's own, and the header's figures do not count."""
    write_kernel(module)
    forge(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert await client.lenses(uri) == ["✓ 2.31× eager · 1.24× compile"]
    assert "9.00" not in await client.hover(uri, 4, 8)


async def test_a_copy_of_the_class_and_its_kernel_counts(client: Client, module: Path, tmp_path: Path) -> None:
    write_kernel(module)
    copy = tmp_path / "elsewhere"
    shutil.copytree(module.parent, copy, ignore=shutil.ignore_patterns("elsewhere"))
    await client.start(copy)
    uri = client.open(copy / "double.py")
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])


@pytest.mark.parametrize(
    "part", ["device", *(pytest.param(part, marks=pytest.mark.slow) for part in ("torch", "triton", "version"))]
)
async def test_another_device_or_version_does_not_count(client: Client, module: Path, part: str) -> None:
    write_kernel(module, validated=False)
    found = Validation(
        schema.from_json(schema.Verdict, VERDICT), schema.from_json(schema.Measurement, MEASUREMENT), None, ""
    )
    fingerprint = analysis.fingerprint(module.read_text(), module, "Double")
    validate_here(fingerprint, BODY, found, **{part: "another"})
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    word = {"version": "kernel-lsp"}.get(part, part)
    (diagnostic,) = client.diagnostics[uri]
    said = f"{'on' if part == 'device' else f'with {word}'} another before; now "
    assert f"DoubleTriton was validated {said}" in diagnostic.message and "It was 2.31× eager" in diagnostic.message
    title, action = await client.lenses(uri)
    assert title.startswith(f"↻ validated {said}") and action == "Validate"
    hover = await client.hover(uri, 4, 8)
    assert "**Not validated with the device and versions of now.**" in hover and "2.31×" in hover
    assert said not in hover
    assert "Use DoubleTriton in this file" not in await client.actions(uri, 4, 8)
    assert f"Validated {said}" in await page_of(client, uri)
    validate_here(fingerprint, BODY, found)  # as another program might, meanwhile
    await client.until(lambda: validated(client, uri))


async def validated(client: Client, uri: str) -> bool:
    return (await client.lenses(uri))[0] == "✓ 2.31× eager · 1.24× compile"


@pytest.mark.parametrize("damaged", [True, False])
async def test_without_a_store_everything_is_a_claim(
    client: Client, module: Path, store: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    write_kernel(module)
    if damaged:
        store.write_bytes(b"not a database" * 1000)
    else:
        monkeypatch.setenv("KERNEL_LSP_STORE", "")
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    said = [m for m in client.log_messages if "could not be read" in m.message]
    assert len(said) == int(damaged) and client.messages == []


@pytest.mark.timeout(180)
async def test_the_action_validates_and_the_next_session_knows(client: Client, module: Path, store: Path) -> None:
    """A real worker: the claim of 9.00× becomes a verdict of this machine, and stays one."""
    pytest.importorskip("triton", reason="the worker needs triton")
    body = REAL
    forge(module, body=body)
    options = {"settings": {"device": "interpreter"}}
    await client.start(module.parent, options=options)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
    lens = (await client.text_document_code_lens_async(params))[1].command
    assert (lens.title, lens.command) == ("Validate", "kernelLsp.validate")
    await client.execute(lens.command, *lens.arguments)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"], 120)

    async def over() -> bool:
        return await client.lenses(uri) == ["✓ correct · not timed"]

    await client.until(over, 60)
    hover = await client.hover(uri, 4, 8)
    assert (
        hover.startswith("✓ **DoubleTriton** · ")
        and "The file says 9.00× eager on NVIDIA H100; not measured here." in hover
    )
    assert "The file says" not in client.diagnostics[uri][0].message
    kernel = kernel_file.read(kernel_file.find_kernel(module, "Double"))
    assert kernel.claim is not None and kernel.claim.verdict.mode == "interpreter"

    other = Client()
    await other.start(module.parent, options=options)
    uri = other.open(module)
    await other.until(lambda: other.codes(uri) == ["kernel-valid"])
    assert await other.lenses(uri) == ["✓ correct · not timed"]
    assert (await other.debug())["workerPids"] == []
    page = await page_of(other, uri)
    assert "example inputs" in page and "not measured here" in page  # the checks are in the store
    await other.end()


REAL = '''"""Double."""
import torch
import triton
import triton.language as tl

from double import Double


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2.0, mask=i < n)


class DoubleTriton(Double):
    def forward(self, x):
        wanted = x.dtype == torch.float32 and x.is_contiguous() and x.numel() > 0 and not x.requires_grad
        if not wanted:
            return super().forward(x)
        out = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
'''
