"""Make the relative links of a README absolute, for pages that show it away from the repository, as PyPI does.

Usage: python tools/readme_links.py README BASE [IMAGES]. Rewrites README in place. BASE: the URL of the repository's folder at the
version that is released; IMAGES: the same for files as they are, where that is another one. It needs the standard library.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)  # "#" is a place on the same page


def absolute(text: str, base: str, images: str = "") -> str:
    """The text with ``base`` before every relative link and ``images``, or ``base``, before every relative image."""

    def replaced(link: re.Match[str]) -> str:
        mark, words, target = link.groups()
        words = _LINK.sub(replaced, words)  # a picture that is a link
        if not _ABSOLUTE.match(target):
            start = (images or base) if mark else base
            target = f"{start.rstrip('/')}/{target.removeprefix('./').removeprefix('/')}"
        return f"{mark}[{words}]({target})"

    return "".join(_outside_code(text, lambda line: _LINK.sub(replaced, line)))


def relative(text: str) -> list[str]:
    """The targets of the text's links and images that are relative, those written as HTML, too."""
    found: list[str] = []

    def look(line: str) -> str:
        for _, words, target in _LINK.findall(line):
            look(words)
            found.append(target)
        found.extend(re.findall(r"(?:src|href)=[\"']([^\"']+)", line))
        return line

    for _ in _outside_code(text, look):
        pass
    return [target for target in found if not _ABSOLUTE.match(target)]


def _outside_code(text: str, change: Callable[[str], str]) -> Iterator[str]:
    """The text, paragraph by paragraph, since a link may go on in the next line; those outside of fenced code changed."""
    fence, paragraph = "", ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if not fence and not mark and line.strip():
            paragraph += line
            continue
        if paragraph:
            yield change(paragraph)
            paragraph = ""
        if mark and (not fence or mark.group(1) == fence):
            fence = "" if fence else mark.group(1)
        yield line
    if paragraph:
        yield change(paragraph)


if __name__ == "__main__":
    readme = Path(sys.argv[1])
    readme.write_text(absolute(readme.read_text("utf-8"), *sys.argv[2:]), "utf-8")
