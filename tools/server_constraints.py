"""Print the pins of what the server itself needs, from the file of pins given: what the extension installs."""

import importlib.metadata
import re
import sys
from pathlib import Path


def needed(name: str) -> set[str]:
    """A distribution's requirements without extras, and theirs, by normalised name."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for requirement in importlib.metadata.requires(waiting.pop()) or []:
            head, _, marker = requirement.partition(";")
            other = normal(re.match(r"[\w.-]+", head.strip())[0])  # type: ignore[index]
            if "extra ==" not in marker and other not in found and installed(other):
                found.add(other)
                waiting.append(other)
    return found


def installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    wanted = needed("kernel-lsp")
    for line in Path(sys.argv[1]).read_text("utf-8").splitlines():
        if normal(line.partition("==")[0]) in wanted:
            print(line)


if __name__ == "__main__":
    main()
