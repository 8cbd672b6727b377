"""What a user's own program calls its modules with: ``kernel-lsp record``.

``hook/`` runs inside the user's program and writes part files; ``injected/`` is the folder that brings it there.
``launching.py`` runs the program, ``records.py`` is the data, ``merging.py`` adds parts and runs up, ``files.py`` keeps
and finds the records, ``examples.py``, ``calls_left_to_eager.py`` and ``timed.py`` say what follows from them.
"""
