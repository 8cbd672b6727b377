"""Compare a wheel with what git tracks: the same files of the package, and the metadata of pyproject.toml.

Usage: python tools/check_wheel.py WHEEL. Ends with 1 and a list where they differ. It needs the standard library and git.
Where README_BASE is set, the links of the description have to be absolute, as tools/make-wheel makes them.
"""

import email.parser
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from readme_links import relative

ROOT = Path(__file__).resolve().parent.parent


def problems(
    names: set[str], metadata: str, tracked: set[str], project: dict[str, object], absolute: bool = False
) -> list[str]:
    """What is wrong with a wheel, as sentences.

    Args:
        names: the files in the wheel.
        metadata: the text of its METADATA.
        tracked: the files of the package in the repository.
        project: the table ``project`` of pyproject.toml.
        absolute: whether links of the description have to be absolute.
    """
    package = {name for name in names if ".dist-info/" not in name}
    found = [f"{name} is missing" for name in sorted(tracked - package)]
    found += [f"{name} is not in the repository" for name in sorted(package - tracked)]
    if "kernel_lsp/py.typed" not in package:
        found.append("kernel_lsp/py.typed is missing: type checkers do not read the annotations")
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        found.append("the licence's text is missing")
    headers = email.parser.Parser().parsestr(metadata)
    for key, expected in (
        ("Name", [project["name"]]),
        ("Requires-Python", [project["requires-python"]]),
        ("License-Expression", [project["license"]]),
        ("Classifier", project["classifiers"]),
    ):
        if (given := headers.get_all(key, [])) != expected:
            found.append(f"{key} is {given}, not {expected}")
    if not headers.get_payload():
        found.append("the description (README.md) is missing")
    if absolute:
        targets = relative(str(headers.get_payload()))
        found += [f"the description has a relative link: {target}" for target in targets]
    return found


def main(wheel: Path) -> int:
    """Print what is wrong with ``wheel``; the exit status."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "kernel_lsp"], check=True, capture_output=True, text=True
    )
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = problems(names, text, set(listed.stdout.splitlines()), project, bool(os.environ.get("README_BASE")))
    for problem in found:
        print(f"{wheel.name}: {problem}", file=sys.stderr)
    if not found:
        print(f"{wheel}: {len(names)} files, {wheel.stat().st_size / 1e6:.2f} MB")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
