"""The model host: a process of its own that holds one language model and lets it write.

Nothing heavy is imported before ``load``. Protocol: docs/architecture.md.
"""
