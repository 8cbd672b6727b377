"""Format a candidate with ruff, so that what is validated is what is written."""

from __future__ import annotations

import asyncio
import contextlib
import functools

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


async def format_source(source: str) -> str:
    """``source`` as ruff formats it, whatever the user's own ruff settings are.

    Raises:
        FormatterFailed: it does not parse, or ruff cannot run.
    """
    options = ["format", "--isolated", f"--line-length={LINE_LENGTH}", "--target-version=py311", "--no-cache", "-"]
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
