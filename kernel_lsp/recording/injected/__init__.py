"""The folder that ``kernel-lsp record`` puts on PYTHONPATH; Python imports ``sitecustomize`` from it at its start."""
