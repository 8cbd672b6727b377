"""What runs inside the user's program. Loaded by its path, under a name of its own; imports torch inside functions only.

``starting.py`` waits for torch and puts ``calls.py`` in place, which notes the calls of modules in ``counts.py`` as
``describing.py`` puts them; ``writing.py`` writes them out. Whatever fails here is left out: the program goes on.
"""
