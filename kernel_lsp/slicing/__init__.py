"""A class and what it uses of the workspace as one self-contained module, for a language model's prompt.

scopes (which names of a statement are the module's) → files (what binds a name) → resolve (what a name is, across
files) → collect (all that the class reaches) → naming and writing (one module) → verify (it runs and is the same).
"""
