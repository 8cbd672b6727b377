"""The main job through a real client, server, worker and kernel: generate to re-validated.

On the machine as it is: with a CUDA GPU kernels run there, else under Triton's interpreter.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

pytest.importorskip("torch", reason="the worker needs torch")
pytest.importorskip("triton", reason="the worker needs triton")

SAMPLE = Path(__file__).parents[2] / "samples" / "rms_norm.py"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """samples/rms_norm.py with small shapes, in a project of its own."""
    # Named, or a GPU machine without a language model would hint at one.
    (tmp_path / "pyproject.toml").write_text('[tool.kernel-lsp]\ngenerators = ["synthesizer"]\n')
    path = tmp_path / "rms_norm.py"
    path.write_text(SAMPLE.read_text().replace("8, 1024, 4096", "2, 4, 64").replace("[4096]", "[64]"))
    return path


def place(text: str, part: str) -> types.Range:
    """Where a part of a text stands (ASCII)."""
    head = text[: text.index(part)]
    line, column = head.count("\n"), len(head) - head.rfind("\n") - 1
    return types.Range(types.Position(line, column), types.Position(line, column + len(part)))


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "profile",
    [
        "visual-studio-code",
        pytest.param("neovim", marks=pytest.mark.slow),
        pytest.param("emacs", marks=pytest.mark.slow),
    ],
)
async def test_generate_to_revalidated(client: Any, sample: Path, profile: str) -> None:
    await client.start(sample.parent, profile)
    uri = client.open(sample)
    source = sample.read_text()
    action = (await client.actions(uri, 6, 8))["Generate Triton kernel for RMSNorm"]
    assert client.codes(uri) == []

    # Generate: the command answers at once, the rest is heard of.
    began = asyncio.get_running_loop().time()
    job = await client.execute(action.command.command, *action.command.arguments)
    assert isinstance(job, str)
    assert asyncio.get_running_loop().time() - began < 1.5
    assert (await client.lenses(uri))[0].startswith("…")
    await client.until(lambda: client.codes(uri), 120)
    assert client.codes(uri) == ["kernel-valid"], client.diagnostics[uri]

    kinds = [p.kind for p in await client.until(lambda: progress(client, job))]
    assert kinds[0] == "begin" and kinds[-1] == "end" and kinds.count("end") == 1
    shares = [p.percentage for p in progress(client, job) if p.kind == "report"]
    assert shares and all(0 <= share <= 100 for share in shares)

    # The file, and what the class shows.
    kernel = sample.parent / "kernels" / "rms_norm_triton.py"
    written = kernel.read_text()
    assert written.startswith("# /// kernel-lsp") and "class RMSNormTriton(RMSNorm)" in written
    hover = await client.hover(uri, 6, 8)
    assert "RMSNormTriton" in hover and kernel.as_uri() in hover and "torch 2." in hover
    await client.until(lambda: shows(client, uri, "✓"))
    assert "Use RMSNormTriton in this file" in await client.actions(uri, 6, 8)

    # An edit makes it stale, a save has it validated again, and the new verdict replaces the old one.
    client.change(uri, 2, ") / self.weight", place(source, ") * self.weight"))
    await client.until(lambda: client.codes(uri) == ["kernel-stale"])
    assert "stale" in (await client.lenses(uri))[0]
    sample.write_text(source.replace(") * self.weight", ") / self.weight"))
    client.save(uri)
    await client.until(lambda: client.codes(uri) == ["kernel-outdated"], 60)
    await client.until(lambda: shows(client, uri, "Kernel out of date · Regenerate"))
    assert "Regenerate Triton kernel for RMSNorm" in await client.actions(uri, 6, 8)

    # Back to what it was: right again.
    client.change(uri, 3, source)
    sample.write_text(source)
    client.save(uri)
    await client.until(lambda: client.codes(uri) == ["kernel-valid"], 60)
    assert client.messages == []  # not one toast
    about = await client.debug()
    assert about["heavyModules"] == []
    loaded = Path(f"/proc/{about['pid']}/maps").read_text()
    assert not [name for name in ("torch", "triton", "numpy") if f"/{name}/" in loaded]


async def shows(client: Any, uri: str, title: str) -> bool:
    return (await client.lenses(uri))[0].startswith(title)


def progress(client: Any, job: str) -> list[Any]:
    found = [p for p in client.progress_reports.get(job, [])]
    return found if found and found[-1].kind == "end" else []
