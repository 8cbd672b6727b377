"""kernelLsp.showReport over the real protocol: the page, its file, and that it is kept up to date."""

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pytest_lsp import client_capabilities

from kernel_lsp.server.features.report import file_name
from tests.server.lsp_client import BODY, MODULE, write_kernel


async def show(client: Any, uri: str, name: str = "Double") -> Path:
    """Ask for the report and return the file that the client is told to show."""
    before = len(client.shown_documents)
    await client.execute("kernelLsp.showReport", {"uri": uri, "className": name, "version": 1})
    shown = await client.until(lambda: client.shown_documents[before:])
    assert shown[0].external is True
    return Path(shown[0].uri.removeprefix("file://"))


async def test_the_page_of_an_earlier_session(client: Any, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent)
    page = await show(client, client.open(module))
    text = page.read_text("utf-8")
    assert page.name == "Double.html" and text.startswith("<!DOCTYPE html>")
    assert "2.31× eager · 1.24× torch.compile on Test GPU" in text
    assert "seeds" in text and "5 seeds" in text
    assert "<h2>Candidates</h2>" not in text  # they are known for as long as the session that validated them lasts
    first = MODULE.splitlines().index("class Double(nn.Module):") + 1
    assert f'data-n="{first}"><i class="k">class</i>' in text  # the class's own lines, numbered as in its file
    assert "DoubleTriton" in text and BODY.splitlines()[1].split()[0] in text
    await client.end()
    assert not page.exists()


async def test_what_changed_since_is_said(client: Any, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    client.change(uri, 2, MODULE.replace("2.0", "3.0"))
    assert "changed since its kernel was validated" in (await show(client, uri)).read_text("utf-8")


@pytest.mark.slow
async def test_a_later_job_writes_the_page_anew(client: Any, module: Path) -> None:
    write_kernel(module)
    await client.start(module.parent, options={"settings": {"device": "interpreter"}})
    uri = client.open(module)
    page = await show(client, uri)
    assert "Test GPU" in page.read_text("utf-8")
    argument = {"uri": uri, "className": "Double", "version": 1, "overwrite": True}
    await client.execute("kernelLsp.generate", argument)
    await client.until(lambda: "not timed" in page.read_text("utf-8"), 90)
    text = page.read_text("utf-8")
    assert "under Triton’s interpreter" in text and "get_inputs()" in text and "Worker ready" in text
    assert [path.name for path in page.parent.iterdir()] == ["Double.html"]
    shown = len(client.shown_documents)
    assert shown == 1  # the page is rewritten, not put in front of the user again


@pytest.mark.slow
async def test_a_failed_job_has_a_page_that_says_why(client: Any, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    module = tmp_path / "double.py"
    module.write_text(MODULE.partition("def get_inputs")[0])
    await client.start(tmp_path, options={"settings": {"device": "interpreter"}})
    uri = client.open(module)
    await client.execute("kernelLsp.generate", {"uri": uri, "className": "Double", "version": 1})
    await client.until(lambda: client.messages, 60)
    text = (await show(client, uri)).read_text("utf-8")
    assert "No kernel." in text and "No example inputs for Double" in text


async def test_a_nested_class_and_a_kernel_file(client: Any, module: Path) -> None:
    source = "import torch\n\n\nclass Outer:\n    class Inner(torch.nn.Module):\n        def forward(self, x):\n            return x\n"
    nested = module.parent / "nested.py"
    nested.write_text(source)
    kernel = write_kernel(module)
    await client.start(module.parent)
    page = await show(client, client.open(nested), "Outer.Inner")
    assert page.name == "Outer.Inner.html" and "No kernel has been validated yet" in page.read_text("utf-8")
    page = await show(client, client.open(kernel))
    assert page.name == "Double.html" and "2.31× eager" in page.read_text("utf-8")
    assert "def forward(self, x)" in "".join(part.split(">")[-1] for part in page.read_text("utf-8").split("<"))


async def test_classes_of_one_name_have_pages_of_their_own(client: Any, module: Path) -> None:
    other = module.parent / "sub" / "double.py"
    other.parent.mkdir()
    other.write_text(MODULE)
    await client.start(module.parent)
    first, second = await show(client, client.open(module)), await show(client, client.open(other))
    assert (first.name, second.name) == ("Double.html", "Double-2.html")
    assert await show(client, module.as_uri()) == first


async def test_a_client_that_shows_nothing_is_told_the_path(client: Any, module: Path) -> None:
    write_kernel(module)
    capabilities = client_capabilities("visual-studio-code")
    capabilities.window.show_document = None
    await client.start(module.parent, capabilities)
    uri = client.open(module)
    await client.execute("kernelLsp.showReport", {"uri": uri, "className": "Double", "version": 1})
    await client.until(lambda: [m for m in client.messages if m.message.endswith("Double.html")])


async def test_a_client_that_could_not_show_it_is_told_the_path(client: Any, module: Path) -> None:
    """As Neovim, where there is no browser."""
    client.protocol.fm._features.pop(types.WINDOW_SHOW_DOCUMENT)
    client.feature(types.WINDOW_SHOW_DOCUMENT)(lambda params: types.ShowDocumentResult(success=False))
    write_kernel(module)
    await client.start(module.parent)
    uri = client.open(module)
    await client.execute("kernelLsp.showReport", {"uri": uri, "className": "Double", "version": 1})
    await client.until(lambda: [m for m in client.messages if m.message.endswith("Double.html")])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Outer.Inner", "Outer.Inner"),
        ("../../etc/passwd", "_._etc_passwd"),
        ("a/b\\c:d*?", "a_b_c_d_"),
        ("..", "report"),
        ("", "report"),
        ("Schön", "Sch_n"),
        ("x" * 300, "x" * 80),
        ("con<script>", "con_script_"),
    ],
)
def test_a_file_name_is_safe_anywhere(name: str, expected: str) -> None:
    assert file_name(name) == expected
