"""``python -m kernel_lsp.cli``, with workers from the nursery."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def main() -> int:
    sys.path[0] = str(_HERE.parents[1])
    from kernel_lsp import cli
    from kernel_lsp.jobs import client

    client.WORKER_MAIN = _HERE / "main.py"
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
