"""docs/editors.md says of every diagnostic what it means."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_code_is_explained() -> None:
    source = (ROOT / "kernel_lsp" / "server" / "features" / "diagnostics.py").read_text()
    codes = set(re.findall(r'"((?:kernel|no|cannot|slow)-(?!lsp)[a-z-]+)"', source))
    page = (ROOT / "docs" / "editors.md").read_text()
    assert {"kernel-valid", "no-model", "cannot-validate"} <= codes
    assert set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == codes
