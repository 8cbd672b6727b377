"""What is remembered from one run to the next, in one SQLite file a user. docs/store.md says what, and for how long.

``database.py`` opens the file, ``migrations.py`` holds its schema. One file a table: ``sessions.py``, ``targets.py``,
``kernels.py``, ``verdicts.py`` (with what was measured), ``environments.py``, ``baselines.py``.
``validations.py``: what was validated on this machine, which what a kernel file says of itself is held against.
``history.py`` and ``changes.py``: every verdict on a class over time, and what changed between two of them.
``info.py``, ``pruning.py``, ``exporting.py``, ``importing.py``: the actions of ``kernel-lsp store``.
"""
