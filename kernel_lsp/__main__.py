"""``python -m kernel_lsp``: the same as the command ``kernel-lsp``."""

from __future__ import annotations

import sys

from kernel_lsp.cli import main

if __name__ == "__main__":
    sys.exit(main())
