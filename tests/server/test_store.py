"""The store behind the editor: history in the report, settings that name or leave it out, two servers at once."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from lsprotocol import types

from kernel_lsp import analysis, kernel_file, schema
from kernel_lsp.store import history
from kernel_lsp.store.info import info
from kernel_lsp.store.validations import Validation
from tests.server.lsp_client import BODY, MEASUREMENT, VERDICT, Client, validate_here, write_kernel
from tests.server.test_claims import REAL, forge, page_of


async def test_the_report_shows_what_was_found_before(client: Client, module: Path) -> None:
    write_kernel(module)
    measurement = json.loads(json.dumps(MEASUREMENT))
    measurement["shapes"][0]["kernel"]["median"] = 5.0
    faster = Validation(
        schema.from_json(schema.Verdict, VERDICT),
        schema.from_json(schema.Measurement, measurement),
        None,
        "2026-01-09T00:00:00+00:00",
    )
    validate_here(analysis.fingerprint(module.read_text(), module, "Double"), BODY, faster)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    page = await page_of(client, uri)
    assert "2 verdicts in the store" in page and 'class="curve kernel"' in page
    assert "2026-01-01 00:00 UTC: 2.31× over eager" in page and "2026-01-09 00:00 UTC: 4.62× over eager" in page


async def test_the_setting_names_the_store_or_none(
    client: Client, module: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_kernel(module)
    shutil.copy(store, module.parent / "ours.sqlite")
    monkeypatch.delenv("KERNEL_LSP_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(module.parent / "data"))  # the user's own has nothing
    (module.parent / "pyproject.toml").write_text('[tool.kernel-lsp]\nstore = "ours.sqlite"\n')
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    client.set_configuration({"store": "none"}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    # A folder that is not trusted cannot say which verdicts are believed.
    one = Client()
    await one.start(module.parent, options={"trusted": False})
    uri = one.open(module)
    await one.until(lambda: one.codes(uri) == ["kernel-not-validated"])
    await one.end()


async def test_a_kernel_that_trusted_its_indices_is_not_validated_where_it_has_to_check_them(
    client: Client, module: Path
) -> None:
    write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    client.set_configuration({"bounds": "check"}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    assert (await client.lenses(uri))[0] == "↻ validated with bounds trust before; now check"
    client.set_configuration({"bounds": "trust"}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])


async def test_a_kernel_that_is_less_exact_than_is_asked_for_by_now_can_be_generated_again(
    client: Client, module: Path
) -> None:
    kernel = write_kernel(module)
    parsed = kernel_file.read(kernel)
    header = {key: value for key, value in parsed.header.items() if key != "body"} | {"precision": "tf32"}
    kernel.write_text(kernel_file.assemble(header, parsed.body))
    await client.start(module.parent, options={"settings": {"precision": "tf32"}})
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])  # what is kept of this body is strict
    records = (
        schema.from_json(schema.Verdict, VERDICT | {"held_to": "tf32"}),
        schema.from_json(schema.Measurement, MEASUREMENT),
    )
    validate_here(parsed.fingerprint, BODY, Validation(*records, None, "2026-01-02T00:00:00+00:00"), precision="tf32")
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert await client.lenses(uri) == ["✓ 2.31× eager · 1.24× compile · TF32"]
    client.set_configuration({"precision": "strict"}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))

    async def told() -> bool:
        return len(await client.lenses(uri)) == 2

    await client.until(told)
    title = "✓ 2.31× eager · 1.24× compile · TF32, strict is asked for"
    assert await client.lenses(uri) == [title, "Generate again"]
    page = await page_of(client, uri)
    assert "Correct at TF32" in page and "The kernel was asked for at TF32; precision = strict is set by now." in page


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_neither_is_one_that_this_session_validated_before_the_setting_changed(
    client: Client, module: Path
) -> None:
    pytest.importorskip("triton", reason="the worker needs triton")
    forge(module, body=REAL)
    settings = {"device": "interpreter", "revalidate": "never"}
    await client.start(module.parent, options={"settings": settings})
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    await client.execute("kernelLsp.validate", {"uri": uri, "className": "Double", "version": 1})
    await client.until(lambda: client.codes(uri) == ["kernel-valid"], 100)

    async def idle() -> bool:
        return not (await client.debug())["jobs"]

    await client.until(idle, 60)
    client.set_configuration(settings | {"bounds": "check"}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
    await client.until(lambda: client.codes(uri) == ["kernel-not-validated"])
    assert (await client.lenses(uri))[0] == "↻ validated with bounds trust before; now check"


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_two_servers_and_the_command_line_on_one_store(client: Client, module: Path, store: Path) -> None:
    """Real workers: both validate the same kernel at once, while another process reads what there is."""
    pytest.importorskip("triton", reason="the worker needs triton")
    copy = module.parent / "copy"
    copy.mkdir()
    for name in ("double.py", "pyproject.toml"):
        shutil.copy(module.parent / name, copy)
    other = Client()
    seen = []
    for one, path in ((client, module), (other, copy / "double.py")):
        forge(path, body=REAL)
        await one.start(path.parent, options={"settings": {"device": "interpreter"}})
        uri = one.open(path)
        await one.until(lambda one=one, uri=uri: one.codes(uri) == ["kernel-not-validated"])
        seen.append((one, uri))
    for one, uri in seen:  # what one has found the other sees at once
        await one.execute("kernelLsp.validate", {"uri": uri, "className": "Double", "version": 1})

    async def both() -> bool:
        command = [sys.executable, "-m", "kernel_lsp.cli", "store", "info", "--json"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=dict(os.environ))
        out, _ = await process.communicate()
        assert process.returncode == 0
        return bool(json.loads(out)["rows"].get("verdicts") == 2)

    await client.until(both, 200)
    for one, uri in seen:
        await one.until(lambda one=one, uri=uri: one.codes(uri) == ["kernel-valid"], 60)
    await other.end()
    assert info(store).rows["sessions"] == 2 and info(store).rows["kernels"] == 1
    (entry,) = history.of_class(store, module, module.parent, "Double", 9).entries
    assert (entry.command, entry.status, entry.mode) == ("serve", "ok", "interpreter")


async def test_nothing_is_validated_on_save_where_the_settings_say_never(client: Client, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent, options={"settings": {"revalidate": "never"}})
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    changed = module.read_text().replace("2.0", "3.0")
    client.change(uri, 2, changed)
    module.write_text(changed)
    client.save(uri)
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    await asyncio.sleep(0.5)  # a save starts its job at once
    assert (await client.debug())["jobs"] == [] and client.codes(uri) == ["kernel-stale"]
