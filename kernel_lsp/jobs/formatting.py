"""Format a candidate as the user's project formats its files, so that what is validated is what is written."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import tomllib
from pathlib import Path
from typing import Any

from kernel_lsp.errors import FormatterFailed
from kernel_lsp.jobs import isort_settings

LINE_LENGTH = 100
_SECONDS = 20.0


@functools.cache
def ruff_command() -> list[str]:
    """The ruff binary that was installed beside kernel-lsp.

    Raises:
        FormatterFailed: there is none.
    """
    try:
        from ruff import find_ruff_bin

        return [str(find_ruff_bin())]
    except (ImportError, FileNotFoundError) as error:
        raise FormatterFailed(detail=f"ruff is not installed beside kernel-lsp ({error}); pip install ruff") from error


async def format_source(source: str, path: Path | None = None) -> str:
    """``source`` as the user's project formats it, or else as ruff does in lines of 100 columns.

    ``path``: where the file will be; the nearest ruff.toml or ``[tool.ruff]`` above it says how, and whether imports are
    sorted, or the line length of ``[tool.black]`` and the order of imports by isort's settings. A configuration that ruff
    refuses is passed over.

    Raises:
        FormatterFailed: it does not parse, or ruff cannot run.
    """
    configured, options, order = await asyncio.to_thread(_configuration, path)
    name = ["--no-cache", "--quiet", f"--stdin-filename={path}", "-"]
    if order:
        sorts = ["check", "--isolated", "--fix-only", "--select=I001", *options, *order]
        with contextlib.suppress(FormatterFailed):  # what ruff refuses of them leaves imports as they are
            source = await _ruff([*sorts, *name], source)
    if configured:
        with contextlib.suppress(FormatterFailed):
            sorts = ["check", "--fix-only", "--fixable=I001"]  # where the user has the rule on
            return await _ruff(["format", *name], await _ruff([*sorts, *name], source))
    return await _ruff(["format", "--isolated", *options, "--target-version=py311", "--no-cache", "-"], source)


def _configuration(path: Path | None) -> tuple[bool, list[str], list[str]]:
    """Whether ruff finds a configuration of the user's above ``path``, and the options for it where there is none: for the format, for the order of imports."""
    usual, options, order = [f"--line-length={LINE_LENGTH}"], None, None
    for folder in path.parents if path is not None else []:
        if options is None and any((folder / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
            return True, usual, []
        try:
            tools = tomllib.loads((folder / "pyproject.toml").read_text("utf-8")).get("tool", {})
        except (OSError, ValueError):  # not there, or no TOML
            tools = {}
        if options is None and "ruff" in tools:
            return True, usual, []
        if order is None and (sorting := isort_settings.of_folder(folder, tools)) is not None:
            order = isort_settings.options(sorting, folder)
        if options is None and isinstance(black := tools.get("black"), dict):
            options = _of_black(black) or usual
    return False, options or usual, order or []


def _of_black(settings: dict[str, Any]) -> list[str]:
    """ruff's options for black's settings; none where its line length cannot be."""
    length = settings.get("line-length", 88)
    if type(length) is not int or not 0 < length <= 320:
        return []
    quotes = ['--config=format.quote-style="preserve"'] if settings.get("skip-string-normalization") is True else []
    return [f"--line-length={length}", *quotes]


async def _ruff(options: list[str], source: str) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *ruff_command(),
            *options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise FormatterFailed(detail=f"{ruff_command()[0]}: {error.strerror}") from error
    try:
        async with asyncio.timeout(_SECONDS):
            formatted, complaint = await process.communicate(source.encode("utf-8", "backslashreplace"))
    except TimeoutError:
        raise FormatterFailed(detail=f"ruff took more than {_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode != 0:
        words = complaint.decode("utf-8", "replace").strip().splitlines()
        raise FormatterFailed(detail=words[-1] if words else f"ruff ended with {process.returncode}")
    return formatted.decode("utf-8")
