"""What the commands of ``kernel-lsp`` do, one file each; ``cli.py`` reads their arguments."""
