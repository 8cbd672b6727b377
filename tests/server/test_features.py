"""What an editor shows for module classes, without any job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest
from lsprotocol import types

from kernel_lsp import analysis, errors, schema
from kernel_lsp.server.text.hover_table import accuracy
from tests.server.lsp_client import MEASUREMENT, MODULE, VERDICT, write_kernel


@pytest.mark.parametrize("line", [4, 5])
async def test_actions_on_class_and_forward(client: Any, module: Path, line: int) -> None:
    await client.start(module.parent)
    uri = client.open(module)
    action = (await client.actions(uri, line, 8))["Generate Triton kernel for Double"]
    assert action.kind == types.CodeActionKind.RefactorRewrite
    assert action.command.command == "kernelLsp.generate"
    (argument,) = action.command.arguments
    argument = argument if isinstance(argument, dict) else argument._asdict()
    assert argument == {"uri": uri, "className": "Double", "version": 1}
    assert await client.actions(uri, 6, 8) == {}  # the body of forward
    assert await client.actions(uri, 9, 8) == {}
    assert "Generate Triton kernel for Double" in await client.actions(uri, line, 8, ["refactor"])
    assert await client.actions(uri, line, 8, ["source"]) == {}


async def test_lens_and_no_noise_without_a_kernel(client: Any, module: Path) -> None:
    await client.start(module.parent)
    uri = client.open(module)
    assert await client.lenses(uri) == ["Generate Triton kernel"]
    assert await client.hover(uri, 4, 8) == ""
    assert client.codes(uri) == []


async def test_a_kernel_beside_the_file_shows_without_a_worker(client: Any, module: Path) -> None:
    path = write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    (diagnostic,) = client.diagnostics[uri]
    assert diagnostic.severity == types.DiagnosticSeverity.Hint
    assert diagnostic.source == "kernel-lsp"
    assert (diagnostic.range.start.line, diagnostic.range.start.character, diagnostic.range.end.character) == (4, 6, 12)
    assert await client.lenses(uri) == ["✓ 2.31× eager · 1.24× compile"]
    hover = await client.hover(uri, 4, 8)
    for part in (
        "`float32[8, 32]`",
        "2.31×",
        "1.24×",
        "91%",
        "Test GPU",
        "torch 2.11.0",
        "ago",
        path.as_uri(),
        "3.0e-07",
    ):
        assert part in hover
    actions = await client.actions(uri, 4, 8)
    assert set(actions) == {
        "Generate Triton kernel for Double",
        "Validate Triton kernel for Double",
        "Use DoubleTriton in this file",
        "Show validation report for Double",
    }
    assert (await client.debug())["workerPids"] == []


@pytest.mark.parametrize(
    ("verdict", "measurement", "code", "severity", "lens"),
    [
        ({**VERDICT, "status": "slower"}, MEASUREMENT, "kernel-slower", 4, "✓ 2.31× eager · 1.24× compile"),
        ({**VERDICT, "mode": "interpreter"}, {"missing": "no GPU here"}, "kernel-valid", 4, "✓ correct · not timed"),
        ({"status": "wrong", "reason": "off by 3"}, None, "kernel-wrong", 1, "✗ wrong"),
        ({"status": "compile-error", "reason": "bad"}, None, "kernel-wrong", 1, "✗ compile-error"),
        ({"status": "outdated", "reason": "it changed"}, None, "kernel-outdated", 2, "Kernel out of date · Regenerate"),
        (None, None, "kernel-stale", 4, "Generate Triton kernel"),
    ],
)
async def test_every_verdict(
    client: Any, module: Path, verdict: Any, measurement: Any, code: str, severity: int, lens: str
) -> None:
    write_kernel(module, verdict, measurement)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == [code])
    assert client.diagnostics[uri][0].severity == severity
    assert await client.lenses(uri) == [lens]
    hover = await client.hover(uri, 4, 8)
    message = client.diagnostics[uri][0].message
    if code in ("kernel-slower", "kernel-valid"):
        assert hover.startswith("✓ **DoubleTriton** · Test GPU · torch 2.11.0 · ")
        assert message.startswith("DoubleTriton is correct") and "correct" not in hover
    if measurement is not None and "missing" in measurement:
        assert "no GPU here" in message and "no GPU here" not in hover and "Speed not measured." in hover
    if code == "kernel-wrong":
        assert hover.startswith("✗ **DoubleTriton** · Test GPU · torch 2.11.0 · ")
        assert f"DoubleTriton is not usable ({verdict['status']}): " in message and "usable" not in hover
        assert verdict["reason"] in message and verdict["reason"] not in hover
        assert "Use DoubleTriton in this file" not in await client.actions(uri, 4, 8)
    if code == "kernel-outdated":
        action = (await client.actions(uri, 4, 8))["Regenerate Triton kernel for Double"]
        assert action.kind == "quickfix" and action.command.command == "kernelLsp.generate"
        # What differs stands in the hover alone, which VS Code shows below the diagnostic.
        assert "is out of date: Double, or something it uses, changed since." in message
        assert "↻ **DoubleTriton** does not fit any more. It changed. Test GPU" in hover
        assert all(words not in hover for words in ("out of date", "something it uses", "✗"))


@pytest.mark.parametrize(
    ("severity", "shown", "status"),
    [("information", [3], "ok"), ("hint", [4], "ok"), ("off", [], "ok"), ("information", [3], "slower")],
)
async def test_the_severity_of_success_is_a_setting(
    client: Any, module: Path, severity: str, shown: list[int], status: str
) -> None:
    write_kernel(module, VERDICT | {"status": status})
    (module.parent / "pyproject.toml").write_text(f'[tool.kernel-lsp]\nvalid-severity = "{severity}"\n')
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.lenses(uri))
    assert await client.lenses(uri) == ["✓ 2.31× eager · 1.24× compile"]
    await client.until(lambda: [d.severity for d in client.diagnostics.get(uri, [])] == shown)


async def test_stale_with_the_first_edit_that_matters(client: Any, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    client.change(uri, 2, "# a comment\n", types.Range(types.Position(0, 0), types.Position(0, 0)))
    assert await client.lenses(uri) == ["✓ 2.31× eager · 1.24× compile"]
    client.change(uri, 3, "3", types.Range(types.Position(7, 19), types.Position(7, 20)))
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    assert (await client.lenses(uri))[0] == "↻ stale · was 2.31× eager · 1.24× compile"
    hover = await client.hover(uri, 5, 8)
    assert "**Stale.**" in hover and "changed since" in client.diagnostics[uri][0].message
    assert "changed since" not in hover
    assert types.WORKSPACE_CODE_LENS_REFRESH in client.requests
    client.change(uri, 4, "2", types.Range(types.Position(7, 19), types.Position(7, 20)))
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])  # the edit was undone


async def test_diagnostics_come_again_for_a_newer_version(client: Any, module: Path) -> None:
    """Helix drops those of an older version than it has, and would show what was true before for ever."""
    write_kernel(module)
    await client.start(module.parent, "emacs")
    uri = client.open(module)
    client.change(uri, 2, "3", types.Range(types.Position(6, 19), types.Position(6, 20)))
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    del client.diagnostics[uri]
    client.change(uri, 3, "3", types.Range(types.Position(6, 20), types.Position(6, 20)))
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])


async def test_an_edit_of_a_class_whose_kernel_is_out_of_date_leaves_it_so(client: Any, module: Path) -> None:
    """The lens and the diagnostic stay; the kernel file edited by hand may fit again."""
    kernel = write_kernel(module, {"status": "outdated", "reason": "it changed"}, None)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-outdated"])
    client.change(uri, 2, MODULE.replace("2.0", "3.0"))
    assert await client.lenses(uri) == ["Kernel out of date · Regenerate"]
    assert "Regenerate Triton kernel for Double" in await client.actions(uri, 4, 8)
    kernel.write_text(kernel.read_text().replace("    pass", "    mine = 1"))
    changes = [types.FileEvent(kernel.as_uri(), types.FileChangeType.Changed)]
    client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes))
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])


def test_the_hover_gives_the_error_on_the_example_inputs_and_the_largest() -> None:
    known = {"error": 1.1, "eager_error": 1.2, "error_check": "tiny values", "example_error": 2e-7}
    verdict = schema.from_json(schema.Verdict, VERDICT | known | {"example_eager_error": 3e-7})
    assert accuracy(verdict).startswith(
        "Error against float64: 2.0e-07 (eager: 3.0e-07), largest 1.1e+00 (eager: 1.2e+00) in the check “tiny values”, "
        "precision fp32. "
    )


async def test_the_hover_is_what_was_validated_a_line_of_speed_a_line_of_accuracy_and_links(
    client: Any, module: Path
) -> None:
    kernel = write_kernel(module, {**VERDICT, "limits": ["races"], "error_check": "large values"})
    await client.start(module.parent, options={"commandLinks": True})
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    validated, speed, accuracy, links = (await client.hover(uri, 4, 8)).split("\n\n")
    assert validated.startswith("✓ **DoubleTriton** · Test GPU · torch 2.11.0 · triton 3.6.0 · ")
    assert len(speed.split("\n")) == 3 and speed.split("\n")[2].startswith("| `float32[8, 32]` | 23.1 µs")
    assert accuracy == (
        "Error against float64: 3.0e-07 (eager: 2.5e-07), precision fp32. 1 of 1 checks passed, 1 not possible here."
    )
    argument = quote(json.dumps([{"uri": uri, "className": "Double"}]))
    assert links == (
        f"[double_triton.py]({kernel.as_uri()}) · [Report](command:kernelLsp.showReport?{argument}) · "
        f"[Validate](command:kernelLsp.validate?{argument})"
    )


async def test_without_command_links_the_hover_has_links_to_files(client: Any, module: Path) -> None:
    kernel = write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    link = f"[double_triton.py]({kernel.as_uri()})"
    assert (await client.hover(uri, 4, 8)).split("\n\n")[-1] == link
    await client.execute("kernelLsp.showReport", {"uri": uri, "className": "Double", "version": 1})
    (shown,) = await client.until(lambda: client.shown_documents)
    assert (await client.hover(uri, 4, 8)).split("\n\n")[-1] == f"{link} · [Report]({shown.uri})"


async def test_an_error_is_said_in_the_diagnostic_and_not_again_in_the_hover(client: Any, module: Path) -> None:
    module.write_text(module.read_text().replace("get_inputs", "other_inputs"))
    await client.start(module.parent)
    uri = client.open(module)
    await client.execute("kernelLsp.generate", {"uri": uri, "className": "Double", "version": 1})

    async def failed() -> bool:
        return "Example inputs are missing" in await client.hover(uri, 4, 8) and bool(client.diagnostics.get(uri))

    await client.until(failed, 60)
    (diagnostic,) = client.diagnostics[uri]
    assert diagnostic.code == "no-example-inputs" and len(diagnostic.message) > 60
    assert diagnostic.message not in await client.hover(uri, 4, 8)


async def test_hover_in_plain_text(client: Any, module: Path) -> None:
    """For an editor that says that it shows no Markdown."""
    path = write_kernel(module)
    formats = types.HoverClientCapabilities(content_format=[types.MarkupKind.PlainText])
    capabilities = types.ClientCapabilities(text_document=types.TextDocumentClientCapabilities(hover=formats))
    await client.start(module.parent, capabilities)
    uri = client.open(module)
    text = await client.hover(uri, 4, 8)
    assert not set("*`|") & set(text)
    lines = text.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("float32[8, 32]  "))
    assert len(lines[place - 1]) == len(lines[place]) and "2.31×" in lines[place]
    assert lines[-1] == str(path)


async def test_an_edited_kernel_file_is_stale(client: Any, module: Path) -> None:
    path = write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    path.write_text(path.read_text().replace("    pass", "    mine = 1"))
    changes = [types.FileEvent(path.as_uri(), types.FileChangeType.Changed)]
    client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes))
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    assert "edited" in client.diagnostics[uri][0].message


async def test_a_change_in_an_imported_file_makes_it_stale(client: Any, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    helper, module = tmp_path / "helper.py", tmp_path / "double.py"
    helper.write_text("def twice(x):\n    return x + x\n")
    module.write_text(
        MODULE.replace("import torch\n", "import torch\nfrom helper import twice\n").replace("x * 2.0", "twice(x)")
    )
    write_kernel(module)
    await client.start(tmp_path)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    other = client.open(helper)
    client.change(other, 2, "def twice(x):\n    return 2 * x\n")
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])


async def test_a_kernel_file_says_that_its_class_is_renamed_or_its_source_moved(client: Any, module: Path) -> None:
    kernel = write_kernel(module)
    await client.start(module.parent)
    uri, of_kernel = client.open(module), client.open(kernel)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert client.codes(of_kernel) == []
    text = MODULE.replace("class Double(", "class Doubled(")
    client.change(uri, 2, text)
    module.write_text(text)
    client.save(uri)
    await client.until(lambda: client.codes(of_kernel) == ["cannot-validate"])
    (found,) = client.diagnostics[of_kernel]
    assert found.message == str(
        errors.KernelOrphaned(
            path="kernels/double_triton.py", class_name="Double", source="double.py", hint="; did you mean Doubled?"
        )
    )
    module.rename(module.with_name("twice.py"))
    client.change(of_kernel, 2, kernel.read_text() + "\n")
    await client.until(lambda: any("is not there" in d.message for d in client.diagnostics[of_kernel]))
    assert client.codes(of_kernel) == ["cannot-validate"]


async def test_a_worker_that_ends_leaves_nothing_beside_a_verdict_that_holds(client: Any, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    await client.execute("kernelLsp.validate", {"uri": uri, "className": "Double", "version": 1})

    def ended() -> bool:
        for process in psutil.Process(client._server.pid).children():
            process.kill()
        return any("The worker ended" in told.message for told in client.messages)

    await client.until(ended)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert [d.message for d in client.diagnostics[uri] if "worker" in d.message] == []


async def test_compile_error_at_its_own_line_in_the_kernel_file(client: Any, module: Path) -> None:
    path = write_kernel(module, {"status": "compile-error", "reason": "no such thing", "line": 2}, None)
    await client.start(module.parent)
    uri = client.open(path)
    await client.until(lambda: client.codes(uri) == ["kernel-wrong"])
    line = client.diagnostics[uri][0].range.start.line
    assert path.read_text().splitlines()[line] == "from double import Double"
    assert await client.lenses(uri) == []
    assert list(await client.actions(uri, 0)) == ["Validate Triton kernel for Double"]
    client.change(uri, 2, "# /// kernel-lsp\n# x = [\n# ///\n")
    await client.until(lambda: client.codes(uri) == ["cannot-validate"])


async def test_a_kernel_file_whose_class_is_gone_is_not_offered_for_validation(client: Any, module: Path) -> None:
    path = write_kernel(module)
    await client.start(module.parent)
    uri = client.open(path)
    assert list(await client.actions(uri, 0)) == ["Validate Triton kernel for Double"]
    source = client.open(module, module.read_text().replace("Double", "Twice"))
    await client.until(lambda: client.codes(uri) == ["cannot-validate"])
    assert list(await client.actions(uri, 0)) == []
    client.change(source, 2, module.read_text())
    await client.until(lambda: client.codes(uri) != ["cannot-validate"])
    assert list(await client.actions(uri, 0)) == ["Validate Triton kernel for Double"]


async def test_no_example_inputs_and_the_stub(client: Any, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    path = tmp_path / "net.py"
    source = (
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, dim: int, eps=1):\n        pass\n\n"
    )
    source += "    def forward(self, x, mask=None, *, flag: bool):\n        return x"
    path.write_text(source)
    await client.start(tmp_path)
    uri = client.open(path)
    await client.until(lambda: client.codes(uri) == ["no-example-inputs"])
    assert client.diagnostics[uri][0].severity == types.DiagnosticSeverity.Hint
    action = (await client.actions(uri, 3, 8))["Add example inputs for Net"]
    assert action.kind == types.CodeActionKind.QuickFix
    changed = apply(source, action.edit, uri)
    namespace: dict[str, Any] = {}
    exec(
        compile(changed[len(source) :].replace("import torch", "class torch: randn = tuple"), "stub", "exec"), namespace
    )
    assert "torch.randn(8, 64),  # x" in changed and "mask" not in changed.split("def get_inputs_Net")[1]
    assert namespace["get_init_inputs_Net"]() == [64]
    client.change(uri, 2, changed)
    await client.until(lambda: client.codes(uri) == [])
    assert "Add example inputs for Net" not in await client.actions(uri, 3, 8)


async def test_a_file_that_does_not_parse_is_not_said_to_lack_example_inputs(client: Any, tmp_path: Path) -> None:
    """The syntax error hides its ``get_inputs``; a stub would hide it for good."""
    (tmp_path / "pyproject.toml").write_text("")
    path = tmp_path / "oops.py"
    path.write_text(MODULE.replace("Double", "Oops").replace("x * 2.0", "(x * 2.0"))
    await client.start(tmp_path)
    uri = client.open(path)
    assert await client.lenses(uri) == ["Generate Triton kernel"]
    assert "Add example inputs for Oops" not in await client.actions(uri, 4, 8)
    assert client.diagnostics.get(uri, []) == []
    client.change(uri, 2, path.read_text().replace("(x * 2.0", "x * 2.0").replace("def get_inputs", "def inputs"))
    await client.until(lambda: client.codes(uri) == ["no-example-inputs"])
    assert "Add example inputs for Oops" in await client.actions(uri, 4, 8)


async def test_inputs_from_pyproject_need_no_stub(client: Any, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.kernel-lsp.inputs."net.py::Net"]\nargs = ["float32[8]"]\n')
    path = tmp_path / "net.py"
    path.write_text("from torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n")
    await client.start(tmp_path)
    uri = client.open(path)
    assert "Add example inputs for Net" not in await client.actions(uri, 1, 8)
    assert client.codes(uri) == []


async def test_a_class_name_twice(client: Any, module: Path) -> None:
    text = MODULE + "\n\nclass Double(nn.Module):\n    pass\n"
    module.write_text(text)
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["cannot-validate"] * 2)
    with pytest.raises(Exception, match="more than once"):
        await client.execute("kernelLsp.generate", {"uri": uri, "className": "Double", "version": 1})


def apply(source: str, edit: types.WorkspaceEdit, uri: str) -> str:
    """What a client makes of a workspace edit (ASCII text)."""
    if edit.document_changes:
        (change,) = edit.document_changes
        assert change.text_document.uri == uri
        edits = list(change.edits)
    else:
        assert edit.changes is not None
        edits = list(edit.changes[uri])
    text = analysis.Text(source)
    offsets = []
    for e in edits:
        start, end = (text.offset(analysis.Position(p.line, p.character)) for p in (e.range.start, e.range.end))
        offsets.append((start, end, e.new_text))
    for start, end, new in sorted(offsets, reverse=True):
        source = source[:start] + new + source[end:]
    return source


@pytest.mark.parametrize("package", [False, True])
async def test_use_the_kernel_runs_in_either_import_order(client: Any, tmp_path: Path, package: bool) -> None:
    """Real imports in fresh interpreters, whichever of the two modules comes first; also as a script."""
    import subprocess
    import sys

    (tmp_path / "pyproject.toml").write_text("")
    folder = tmp_path / "pkg" if package else tmp_path
    folder.mkdir(exist_ok=True)
    if package:
        (folder / "__init__.py").write_text("")
    dot = "pkg." if package else ""
    # A stand-in for torch, since what is tested is the order of imports: the edit itself knows nothing of torch.
    fake = "class Module: pass\n"
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("from . import nn\n")
    (tmp_path / "torch" / "nn.py").write_text(fake)
    source = (
        "from torch import nn\n\n\nclass Double(nn.Module):\n    def again(self):\n        return Double()\n\n\n"
        "def build():\n    return Double()\n\n\nif __name__ == '__main__':\n    print(type(build()).__name__)\n"
    )
    module = folder / "double.py"
    module.write_text(source)
    body = f"from {dot}double import Double\n\n\nclass DoubleTriton(Double):\n    pass\n"
    write_kernel(module, body=body)
    await client.start(tmp_path)
    uri = client.open(module)
    action = (await client.actions(uri, 3, 8))["Use DoubleTriton in this file"]
    changed = apply(source, action.edit, uri)
    assert changed.count("DoubleTriton(") == 1 and "return Double()" in changed.split("def build")[0]
    module.write_text(changed)
    orders = [f"import {dot}double as d", f"import {dot}kernels.double_triton, {dot}double as d"]
    for order in orders:
        code = f"{order}; print(type(d.build()).__name__)"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.strip() == "DoubleTriton", done.stderr
    script = ["-m", "pkg.double"] if package else ["double.py"]
    done = subprocess.run([sys.executable, *script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "DoubleTriton", done.stderr


async def test_inlay_hints_are_off_until_wanted(client: Any, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    area = types.Range(types.Position(0, 0), types.Position(20, 0))
    params = types.InlayHintParams(types.TextDocumentIdentifier(uri), area)
    assert not await client.text_document_inlay_hint_async(params)
    client.set_configuration({"inlayHints": True}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))

    async def hints() -> Any:
        return await client.text_document_inlay_hint_async(params)

    (hint,) = await client.until(hints)
    assert (hint.label, hint.position.line, hint.position.character) == ("✓ 2.31× eager · 1.24× compile", 4, 12)


async def test_pull_diagnostics(client: Any, module: Path) -> None:
    """A client that pulls is sent none, told to ask again, and gets the same."""
    from pytest_lsp import client_capabilities

    write_kernel(module)
    capabilities = client_capabilities("visual-studio-code")
    capabilities.text_document.diagnostic = types.DiagnosticClientCapabilities()
    capabilities.workspace.diagnostics = types.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    result = await client.start(module.parent, capabilities)
    assert result.capabilities.diagnostic_provider is not None
    uri = client.open(module)
    params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
    report = await client.text_document_diagnostic_async(params)
    assert [d.code for d in report.items] == ["kernel-valid"]
    await client.lenses(uri)
    client.change(uri, 2, MODULE.replace("2.0", "3.0"))
    await client.until(lambda: client.diagnostic_refresh_count)
    report = await client.text_document_diagnostic_async(params)
    assert [d.code for d in report.items] == ["kernel-stale"]
    assert uri not in client.diagnostics


async def test_checks_that_were_left_out_are_counted_everywhere(client: Any, module: Path) -> None:
    write_kernel(module, {**VERDICT, "skipped": ["float64", "train mode"]})
    await client.start(module.parent)
    uri = client.open(module)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"])
    assert await client.lenses(uri) == ["✓ 2.31× eager · 1.24× compile · 1 passed, 2 skipped"]
    assert "Checks: 1 passed, 2 skipped." in client.diagnostics[uri][0].message
    assert "1 of 1 checks passed, 2 skipped." in await client.hover(uri, 4, 8)


async def test_inputs_of_a_file_are_not_for_parts(client: Any, tmp_path: Path) -> None:
    """They are not missed, but the stub is offered, and so is a kernel."""
    (tmp_path / "pyproject.toml").write_text("")
    path = tmp_path / "net.py"
    part = "class Part(nn.Module):\n    def forward(self, x):\n        return x\n\n\n"
    path.write_text(MODULE.replace("class Double", f"{part}class Double").replace("x * 2.0", "Part()(x) * 2.0"))
    line = path.read_text().splitlines().index("class Part(nn.Module):")
    await client.start(tmp_path)
    uri = client.open(path)
    assert await client.lenses(uri) == ["Generate Triton kernel"] * 2
    assert {"Generate Triton kernel for Part", "Add example inputs for Part"} <= set(await client.actions(uri, line, 8))
    assert "Add example inputs for Double" not in await client.actions(uri, line + 5, 8)
    assert client.codes(uri) == []
