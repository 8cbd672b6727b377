"""Format a candidate as the user's project formats its files, so that what is validated is what is written."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import tomllib
from pathlib import Path

from kernel_lsp.errors import FormatterFailed

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
    sorted, or the line length of ``[tool.black]``. A configuration that ruff refuses is passed over.

    Raises:
        FormatterFailed: it does not parse, or ruff cannot run.
    """
    configured, options = await asyncio.to_thread(_configuration, path)
    if configured:
        with contextlib.suppress(FormatterFailed):
            name = ["--no-cache", "--quiet", f"--stdin-filename={path}", "-"]
            sorts = ["check", "--fix-only", "--fixable=I001"]  # where the user has the rule on
            return await _ruff(["format", *name], await _ruff([*sorts, *name], source))
    return await _ruff(["format", "--isolated", *options, "--target-version=py311", "--no-cache", "-"], source)


def _configuration(path: Path | None) -> tuple[bool, list[str]]:
    """Whether ruff finds a configuration of the user's above ``path``, and the options for it where there is none."""
    usual = [f"--line-length={LINE_LENGTH}"]
    for folder in path.parents if path is not None else []:
        if any((folder / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
            return True, usual
        try:
            tools = tomllib.loads((folder / "pyproject.toml").read_text("utf-8")).get("tool", {})
        except (OSError, ValueError):  # not there, or no TOML
            continue
        if "ruff" in tools:
            return True, usual
        if isinstance(black := tools.get("black"), dict):
            length = black.get("line-length", 88)
            quotes = (
                ['--config=format.quote-style="preserve"'] if black.get("skip-string-normalization") is True else []
            )
            return False, [f"--line-length={length}", *quotes] if type(length) is int and 0 < length <= 320 else usual
    return False, usual


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
