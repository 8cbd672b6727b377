"""A store for a picture: what another machine measured, as if it had been measured here.

``python tools/measured_store.py EXPORT STORE PYTHON…`` imports what ``kernel-lsp store export`` wrote there, takes its verdicts for verdicts
of this machine, and says that the worker of each PYTHON named the devices on which they were reached. A picture names the device, so it
says where its times were taken. No store of a user's is made so: what is imported there never counts as validated.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernel_lsp.store import environments, importing


def main(export: str, store: str, *pythons: str) -> None:
    importing.take(Path(store), Path(export))
    connection = sqlite3.connect(store)
    with connection:
        connection.execute("update verdicts set here = 1")
        devices = [json.loads(ran_on) for (ran_on,) in connection.execute("select distinct ran_on from verdicts")]
    connection.close()
    for python in pythons:
        environments.keep_devices([python], devices, Path(store))


if __name__ == "__main__":
    main(*sys.argv[1:])
