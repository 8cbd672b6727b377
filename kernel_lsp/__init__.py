"""kernel-lsp: from a PyTorch ``nn.Module`` to a validated Triton kernel, inside the editor."""

__version__ = "0.1.0"
