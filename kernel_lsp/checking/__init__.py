"""What ``kernel-lsp check`` finds, as plain data: which kernels changed, what is wrong with them, and the formats of CI."""
