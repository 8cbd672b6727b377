"""The formats of ``kernel-lsp check`` that programs read: one file each, from an ``Outcome`` to text."""
