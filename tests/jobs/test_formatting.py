import pytest

from kernel_lsp.errors import FormatterFailed
from kernel_lsp.jobs.formatting import format_source


async def test_formats_with_its_own_options_whatever_the_project_says(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.ruff]\nline-length = 40\n[tool.ruff.format]\nquote-style='single'\n"
    )
    monkeypatch.chdir(tmp_path)
    source = "x = dict(a=1,b='two',   c=3, d=4, e=5, f=6)\n"
    assert await format_source(source) == 'x = dict(a=1, b="two", c=3, d=4, e=5, f=6)\n'


async def test_formatted_source_stays_as_it_is_under_a_header():
    from kernel_lsp import kernel_file

    body = await format_source('"""Doc."""\nimport torch\nclass A:\n  x=1\n')
    text = kernel_file.assemble({"source": "a.py::A", "verdict": {"status": "ok"}}, body)
    assert await format_source(text) == text


async def test_what_does_not_parse_is_said_to_be_so():
    with pytest.raises(FormatterFailed, match="parse"):
        await format_source("def f(:\n")
